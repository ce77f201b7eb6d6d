#include "rpc/same_host/connection.h"

#include <chrono>
#include <utility>

#include "proto/same_host.pb.h"
#include "rpc/same_host/handshake.h"

namespace hawser::rpc {
namespace {

constexpr char kOpenPath[] = "/hawser.v1.SameHostService/Open";
constexpr absl::Duration kAskTimeout = absl::Seconds(10);
// Retry interval after a link broke or could not be created.
constexpr absl::Duration kAskAgain = absl::Seconds(1);

}  // namespace

SameHostConnection::SameHostConnection(std::shared_ptr<Connection> socket,
                                       std::shared_ptr<ipc::EventLoop> loop,
                                       std::shared_ptr<Gate> gate,
                                       Options options)
    : socket_(std::move(socket)),
      loop_(std::move(loop)),
      gate_(std::move(gate)),
      options_(options) {}

SameHostConnection::~SameHostConnection() {
  Close(absl::CancelledError("the connection was dropped"));
}

std::shared_ptr<SameHostClient> SameHostConnection::client() {
  {
    async::MutexLock lock(&mutex_);
    if (client_ != nullptr && client_->ended()) client_.reset();
    if (client_ != nullptr || closed_.has_value() || asking_) return client_;
    const async::MonotonicTime now = std::chrono::steady_clock::now();
    if (now < ask_after_) return nullptr;
    asking_ = true;
    ask_after_ = async::AddDelay(now, kAskAgain);
  }
  Ask();
  return nullptr;
}

std::shared_ptr<SameHostClient> SameHostConnection::OpenClient() {
  async::MutexLock lock(&mutex_);
  return client_;
}

void SameHostConnection::Ask() {
  v1::OpenSameHostRequest request;
  request.set_boot_id(BootId());
  socket_->Call(kOpenPath, Payload(request.SerializeAsString()),
                async::AddDelay(std::chrono::steady_clock::now(), kAskTimeout),
                [weak = weak_from_this()](absl::StatusOr<Payload> reply) {
                  if (auto self = weak.lock()) self->OnReply(std::move(reply));
                });
}

void SameHostConnection::OnReply(absl::StatusOr<Payload> reply) {
  Gate::Entry entry(gate_.get());
  if (!entry) return;
  v1::OpenSameHostReply door;
  absl::StatusOr<std::string> bytes =
      reply.ok() ? reply->Flatten() : reply.status();
  if (bytes.ok() && !door.ParseFromString(*bytes)) {
    bytes = absl::InternalError("the reply is malformed");
  }
  if (!bytes.ok()) {
    NoteRefusal(bytes.status());
    return;
  }
  ConnectSameHost(
      loop_.get(), door, options_.max_message_bytes,
      [weak = weak_from_this()](absl::StatusOr<SameHostLink::Parts> parts) {
        if (auto self = weak.lock()) {
          self->OnParts(std::move(parts));
        }
      });
}

void SameHostConnection::NoteRefusal(const absl::Status& status) {
  async::MutexLock lock(&mutex_);
  asking_ = false;
  // Neither condition changes while the peer runs, and its successor gets a new
  // connection.
  if (absl::IsFailedPrecondition(status) || absl::IsUnimplemented(status)) {
    ask_after_ = async::kNever;
  }
}

void SameHostConnection::OnParts(absl::StatusOr<SameHostLink::Parts> parts) {
  if (!parts.ok()) {
    // Retry after any error: a peer that closes the socket at once, because it
    // has no descriptors or watches left, also causes FAILED_PRECONDITION.
    async::MutexLock lock(&mutex_);
    asking_ = false;
    return;
  }
  auto link = std::make_shared<SameHostLink>(*std::move(parts), loop_.get());
  auto client =
      std::make_shared<SameHostClient>(link, loop_.get(), options_.spin);
  link->SetHandler(client);
  link->Start();
  std::optional<absl::Status> closed;
  {
    async::MutexLock lock(&mutex_);
    asking_ = false;
    closed = closed_;
    if (!closed.has_value()) client_ = client;
  }
  if (closed.has_value()) client->Close(*closed);
}

Connection::CallId SameHostConnection::Call(std::string_view path,
                                            Payload request,
                                            async::MonotonicTime deadline,
                                            Done done) {
  // Otherwise let the socket reject a message that is too long or cannot be
  // fetched.
  if (request.size() <= options_.max_message_bytes && request.FetchAll().ok()) {
    Gate::Entry entry(gate_.get());
    if (const auto memory = entry ? client() : nullptr) {
      const CallId id = last_id_.fetch_add(1, std::memory_order_relaxed) + 1;
      if (memory->Call(id, path, request, deadline, done)) return MemoryId(id);
    }
  }
  return SocketId(
      socket_->Call(path, std::move(request), deadline, std::move(done)));
}

void SameHostConnection::Cancel(CallId id) {
  if (!IsMemoryId(id)) {
    socket_->Cancel(id / 2);
    return;
  }
  Gate::Entry entry(gate_.get());
  if (!entry) return;
  if (const auto client = OpenClient(); client != nullptr)
    client->Cancel(id / 2);
}

void SameHostConnection::AwaitReply(CallId id) {
  if (!IsMemoryId(id)) {
    socket_->AwaitReply(id / 2);
    return;
  }
  Gate::Entry entry(gate_.get());
  if (!entry) return;
  if (const auto client = OpenClient(); client != nullptr)
    client->Await(id / 2);
}

void SameHostConnection::Close(absl::Status status) {
  std::shared_ptr<SameHostClient> client;
  {
    async::MutexLock lock(&mutex_);
    if (!closed_.has_value()) closed_ = status;
    client = std::move(client_);
  }
  if (client != nullptr) client->Close(status);
  socket_->Close(std::move(status));
}

}  // namespace hawser::rpc
