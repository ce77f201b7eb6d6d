#include "rpc/link/link_connection.h"

#include <chrono>
#include <utility>

namespace hawser::rpc {
namespace {

// Retry interval after a link broke or could not be created.
constexpr absl::Duration kOpenAgain = absl::Seconds(1);

}  // namespace

LinkConnection::LinkConnection(std::shared_ptr<Connection> base,
                               std::unique_ptr<LinkOpener> opener,
                               std::shared_ptr<Gate> gate, Options options)
    : base_(std::move(base)),
      opener_(std::move(opener)),
      gate_(std::move(gate)),
      options_(std::move(options)) {}

LinkConnection::~LinkConnection() {
  Close(absl::CancelledError("the connection was dropped"));
}

std::shared_ptr<LinkClient> LinkConnection::client() {
  {
    async::MutexLock lock(&mutex_);
    if (client_ != nullptr && client_->ended()) client_.reset();
    if (client_ != nullptr || closed_.has_value() || opening_) return client_;
    if (num_calls_ < options_.calls_before_link &&
        ++num_calls_ < options_.calls_before_link) {
      return nullptr;
    }
    const async::MonotonicTime now = std::chrono::steady_clock::now();
    if (now < open_after_) return nullptr;
    opening_ = true;
    open_after_ = async::AddDelay(now, kOpenAgain);
  }
  opener_->Open([weak = weak_from_this()](
                    absl::StatusOr<std::shared_ptr<MessageLink>> link) {
    if (auto self = weak.lock()) self->OnLink(std::move(link));
  });
  return nullptr;
}

std::shared_ptr<LinkClient> LinkConnection::OpenClient() {
  async::MutexLock lock(&mutex_);
  return client_;
}

void LinkConnection::OnLink(absl::StatusOr<std::shared_ptr<MessageLink>> link) {
  if (!link.ok()) {
    async::MutexLock lock(&mutex_);
    opening_ = false;
    // Neither condition changes while the peer runs, and its successor gets a
    // new connection.
    if (absl::IsFailedPrecondition(link.status()) ||
        absl::IsUnimplemented(link.status())) {
      open_after_ = async::kNever;
    }
    return;
  }
  auto client =
      std::make_shared<LinkClient>(*link, options_.post, options_.spin);
  (*link)->SetHandler(client);
  (*link)->Start();
  std::optional<absl::Status> closed;
  {
    async::MutexLock lock(&mutex_);
    opening_ = false;
    closed = closed_;
    if (!closed.has_value()) client_ = client;
  }
  if (closed.has_value()) client->Close(*closed);
}

Connection::CallId LinkConnection::Call(std::string_view path, Payload request,
                                        async::MonotonicTime deadline,
                                        Done done) {
  // Otherwise let the base reject a message that is too long or cannot be
  // fetched.
  if (request.size() <= options_.max_request_bytes && request.FetchAll().ok()) {
    Gate::Entry entry(gate_.get());
    if (const auto link = entry ? client() : nullptr) {
      const CallId id = last_id_.fetch_add(1, std::memory_order_relaxed) + 1;
      if (link->Call(id, path, request, deadline, done)) return LinkId(id);
    }
  }
  return BaseId(
      base_->Call(path, std::move(request), deadline, std::move(done)));
}

void LinkConnection::Cancel(CallId id) {
  if (!IsLinkId(id)) {
    base_->Cancel(id / 2);
    return;
  }
  Gate::Entry entry(gate_.get());
  if (!entry) return;
  if (const auto client = OpenClient(); client != nullptr)
    client->Cancel(id / 2);
}

void LinkConnection::AwaitReply(CallId id, absl::FunctionRef<bool()> stop) {
  if (!IsLinkId(id)) {
    base_->AwaitReply(id / 2, stop);
    return;
  }
  Gate::Entry entry(gate_.get());
  if (!entry) return;
  if (const auto client = OpenClient(); client != nullptr)
    client->Await(id / 2, stop);
}

void LinkConnection::Close(absl::Status status) {
  std::shared_ptr<LinkClient> client;
  {
    async::MutexLock lock(&mutex_);
    if (!closed_.has_value()) closed_ = status;
    client = std::move(client_);
  }
  // First: Cancel ends an open link too, with an error of its own.
  if (client != nullptr) client->Close(status);
  opener_->Cancel();
  base_->Close(std::move(status));
}

}  // namespace hawser::rpc
