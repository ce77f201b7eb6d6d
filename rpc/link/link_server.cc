#include "rpc/link/link_server.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "async/check.h"

namespace hawser::rpc {
namespace {

// Limit on one client's calls that are being served or whose replies are
// queued.
constexpr size_t kMaxCalls = size_t{1} << 16;

}  // namespace

LinkMethods::LinkMethods(const std::vector<TransportMethod>& methods) {
  for (const TransportMethod& method : methods) {
    methods_.emplace(method.path, method);
  }
}

const TransportMethod* LinkMethods::Find(const std::string& path) const {
  auto it = methods_.find(path);
  return it == methods_.end() ? nullptr : &it->second;
}

class LinkServer::Call final : public IncomingCall {
 public:
  Call(std::shared_ptr<MessageLink> link, std::shared_ptr<LinkServer> server,
       std::shared_ptr<Cancellation> cancellation, LinkMessage message)
      : link_(std::move(link)),
        server_(std::move(server)),
        cancellation_(std::move(cancellation)),
        id_(message.call),
        deadline_(message.deadline),
        request_(std::move(message.payload)) {}
  ~Call() override {
    if (!replied_) {
      SendReply(absl::UnavailableError("the worker dropped the call"));
    }
  }

  Payload TakeRequest() override { return std::move(request_); }
  async::MonotonicTime deadline() const override { return deadline_; }
  const std::shared_ptr<Cancellation>& cancellation() const override {
    return cancellation_;
  }
  absl::StatusOr<std::optional<net::Identity>> caller() const override {
    return server_->caller_;
  }
  bool more_waiting() const override { return link_->more_waiting(); }
  tensor::StoragePtr AllocateReply(size_t bytes) override {
    return link_->AllocateReply(bytes);
  }
  void Reply(absl::StatusOr<Payload> reply) override {
    HAWSER_CHECK(!replied_) << "replied twice";
    SendReply(std::move(reply));
  }
  void Discard() override {
    HAWSER_CHECK(!replied_) << "replied twice";
    SendReply(
        absl::AbortedError("a duplicate of this request is being served"));
  }

 private:
  void SendReply(absl::StatusOr<Payload> reply) {
    replied_ = true;
    // A cancelled call gets no reply.
    if (server_->Take(id_) == nullptr) return;
    LinkMessage message{.kind = LinkMessage::Kind::kReply, .call = id_};
    if (reply.ok() && reply->size() > link_->max_message_bytes()) {
      reply = absl::ResourceExhaustedError(absl::StrCat(
          "a message of ", reply->size(), " bytes exceeds the limit of ",
          link_->max_message_bytes(),
          " bytes; raise GrpcTransportOptions::max_message_bytes at both "
          "ends"));
    }
    if (reply.ok()) {
      // A reply may contain remote chunks of a forwarded request.
      if (absl::Status status = reply->FetchAll(); !status.ok()) {
        reply = std::move(status);
      }
    }
    if (reply.ok()) {
      message.payload = *std::move(reply);
    } else {
      message.error = reply.status();
    }
    link_->Send(std::move(message));
  }

  const std::shared_ptr<MessageLink> link_;
  const std::shared_ptr<LinkServer> server_;
  const std::shared_ptr<Cancellation> cancellation_;
  const uint64_t id_;
  const async::MonotonicTime deadline_;
  Payload request_;
  bool replied_ = false;
};

std::shared_ptr<Cancellation> LinkServer::Take(uint64_t call) {
  async::MutexLock lock(&mutex_);
  auto it = calls_.find(call);
  if (it == calls_.end()) return nullptr;
  std::shared_ptr<Cancellation> cancellation = std::move(it->second);
  calls_.erase(it);
  return cancellation;
}

LinkWork LinkServer::OnMessage(LinkMessage message) {
  switch (message.kind) {
    case LinkMessage::Kind::kRequest:
      return OnRequest(std::move(message));
    case LinkMessage::Kind::kCancel:
      if (auto cancellation = Take(message.call)) {
        return {message.call, [cancellation] { cancellation->Cancel(); }};
      }
      [[fallthrough]];
    case LinkMessage::Kind::kRelease:
      if (auto link = link_.lock()) link->Forget(message.call);
      return {};
    case LinkMessage::Kind::kReply:
      break;
  }
  return {};
}

LinkWork LinkServer::OnRequest(LinkMessage message) {
  const std::shared_ptr<MessageLink> link = link_.lock();
  if (link == nullptr) return {};
  const uint64_t id = message.call;
  const TransportMethod* method = methods_->Find(message.path);
  absl::Status refused = message.error;
  auto cancellation = std::make_shared<Cancellation>();
  if (refused.ok() && method == nullptr) {
    refused = absl::UnimplementedError("this worker does not serve the method");
  }
  if (refused.ok()) refused = link->CheckRoom();
  if (refused.ok()) {
    async::MutexLock lock(&mutex_);
    if (ended_) return {};
    if (calls_.size() + link->num_replies_waiting() >= kMaxCalls) {
      refused = absl::ResourceExhaustedError(
          absl::StrCat("this client has ", kMaxCalls,
                       " calls in flight or with unread replies"));
    } else if (!calls_.emplace(id, cancellation).second) {
      // A duplicate call number: the client is faulty.
      return {};
    }
  }
  if (!refused.ok()) {
    link->Send({.kind = LinkMessage::Kind::kReply,
                .call = id,
                .error = std::move(refused)});
    return {};
  }
  auto call = std::make_unique<Call>(
      link, shared_from_this(), std::move(cancellation), std::move(message));
  return {id, [method, call = std::move(call)]() mutable {
            method->handler(std::move(call));
          }};
}

void LinkServer::OnEnd(const absl::Status&) {
  absl::flat_hash_map<uint64_t, std::shared_ptr<Cancellation>> calls;
  {
    async::MutexLock lock(&mutex_);
    ended_ = true;
    calls.swap(calls_);
  }
  for (const auto& [id, cancellation] : calls) cancellation->Cancel();
}

}  // namespace hawser::rpc
