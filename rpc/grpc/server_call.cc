#include "rpc/grpc/server_call.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "async/check.h"
#include "grpcpp/alarm.h"
#include "grpcpp/impl/rpc_service_method.h"
#include "grpcpp/support/async_stream.h"
#include "rpc/grpc/byte_buffer.h"
#include "rpc/grpc/grpc_time.h"
#include "rpc/grpc/status.h"

namespace hawser::rpc {
namespace {

// The memory of shorter replies is not counted: the call itself uses more, and
// the number of calls is limited.
constexpr size_t kMinCountedReply = size_t{4} << 10;

// A call whose request is one message.
class UnaryServerCall final : public ServerCall {
 public:
  explicit UnaryServerCall(const ServedMethod& method) : ServerCall(method) {
    grpc_.emplace();
  }
  ~UnaryServerCall() override {
    grpc_.reset();
    Unregister();
  }

 private:
  struct Grpc {
    Grpc() : reader(&context) {}

    ::grpc::ServerContext context;
    ::grpc::ByteBuffer request;
    ::grpc::ServerAsyncReader<::grpc::ByteBuffer, ::grpc::ByteBuffer> reader;
  };

  ::grpc::ServerContext& context() override { return grpc_->context; }
  void Request(Event* event) override {
    method_.service->RequestAsyncClientStreaming(
        method_.number, &grpc_->context, &grpc_->reader, parts_->queue,
        parts_->queue, event);
  }
  void Finish(const ::grpc::ByteBuffer& reply, Event* event) override {
    grpc_->reader.Finish(reply, ::grpc::Status::OK, event);
  }
  void FinishWithError(const ::grpc::Status& status, Event* event) override {
    grpc_->reader.FinishWithError(status, event);
  }
  absl::StatusOr<Payload> TakePayload() override {
    return ToPayload(grpc_->request);
  }
  void ReleaseGrpc() override { grpc_.reset(); }

  void Begin() override {
    std::shared_ptr<ServerCall> self = shared_from_this();
    async::MutexLock lock(&mutex_);
    if (replied_ || released_) return;
    Gate::Entry entry(parts_->gate.get());
    if (!entry) return;
    read_.self = std::move(self);
    grpc_->reader.Read(&grpc_->request, &read_);
  }

  void OnRead(bool ok) override {
    if (ok) {
      Handle();
    } else {
      // No effect if the caller has disconnected.
      Reply(absl::InternalError("the request has no message"));
    }
  }

  std::optional<Grpc> grpc_;
};

// A call whose request is received in fragments, one read at a time.
class FragmentedServerCall final : public ServerCall {
 public:
  explicit FragmentedServerCall(const ServedMethod& method)
      : ServerCall(method) {
    grpc_.emplace();
  }
  ~FragmentedServerCall() override {
    grpc_.reset();
    Unregister();
  }

 private:
  struct Grpc {
    Grpc() : reader(&context) {}

    ::grpc::ServerContext context;
    ::grpc::ByteBuffer fragment;
    ::grpc::ServerAsyncReader<::grpc::ByteBuffer, ::grpc::ByteBuffer> reader;
    ::grpc::Alarm patience;
  };

  ::grpc::ServerContext& context() override { return grpc_->context; }
  void Request(Event* event) override {
    method_.service->RequestAsyncClientStreaming(
        method_.number, &grpc_->context, &grpc_->reader, parts_->queue,
        parts_->queue, event);
  }
  void Finish(const ::grpc::ByteBuffer& reply, Event* event) override {
    grpc_->reader.Finish(reply, ::grpc::Status::OK, event);
  }
  void FinishWithError(const ::grpc::Status& status, Event* event) override {
    grpc_->patience.Cancel();
    grpc_->reader.FinishWithError(status, event);
  }
  absl::StatusOr<Payload> TakePayload() override { return assembler_->Take(); }
  void ReleaseGrpc() override { grpc_.reset(); }

  void Begin() override {
    assembler_.emplace(parts_->max_message_bytes, parts_->assembly_budget,
                       Client());
    Await(Next::kFragmentOrTime);
  }

  enum class Next { kFragment, kTime, kFragmentOrTime };

  // Starts the next read, unless the request is complete or already replied to.
  void Await(Next next) {
    std::shared_ptr<ServerCall> self = shared_from_this();
    async::MutexLock lock(&mutex_);
    if (replied_ || released_ || progress_ != Progress::kUnderWay) return;
    Gate::Entry entry(parts_->gate.get());
    if (!entry) return;
    if (next != Next::kFragment) {
      stalled_.self = self;
      grpc_->patience.Set(
          parts_->queue,
          absl::ToChronoTime(absl::Now() + parts_->fragment_timeout),
          &stalled_);
    }
    if (next != Next::kTime) {
      read_.self = std::move(self);
      grpc_->reader.Read(&grpc_->fragment, &read_);
    }
  }

  void OnRead(bool ok) override {
    if (!ok) {
      // No effect if the caller has disconnected or has its reply.
      Reply(absl::InternalError(absl::StrCat(
          "a request in fragments ended after ", assembler_->received_bytes(),
          " of ", assembler_->total_bytes(), " bytes")));
      return;
    }
    absl::StatusOr<bool> whole = assembler_->Add(grpc_->fragment);
    if (!whole.ok()) {
      Reply(whole.status());
    } else if (!*whole) {
      came_.store(true, std::memory_order_relaxed);
      Await(Next::kFragment);
    } else if (Complete()) {
      Handle();
    }
  }

  // Returns false if the call has already ended.
  bool Complete() {
    async::MutexLock lock(&mutex_);
    if (released_ || progress_ == Progress::kGivenUp) return false;
    progress_ = Progress::kWhole;
    grpc_->patience.Cancel();
    return true;
  }

  void OnStalled(bool ok) override {
    // The timer was cancelled.
    if (!ok) return;
    if (came_.exchange(false, std::memory_order_relaxed)) {
      Await(Next::kTime);
      return;
    }
    {
      async::MutexLock lock(&mutex_);
      if (progress_ == Progress::kWhole) return;
      progress_ = Progress::kGivenUp;
    }
    Reply(absl::DeadlineExceededError(
        absl::StrCat("no fragment of the request arrived for ",
                     absl::FormatDuration(parts_->fragment_timeout),
                     " (GrpcLimits::fragment_timeout)")));
  }

  enum class Progress { kUnderWay, kWhole, kGivenUp };

  std::optional<Grpc> grpc_;
  std::optional<MessageAssembler> assembler_;
  // Whether a fragment arrived since the last timer.
  std::atomic<bool> came_{false};
  Progress progress_ ABSL_GUARDED_BY(mutex_) = Progress::kUnderWay;
};

}  // namespace

int GrpcMethods::Add(std::string path) {
  const int number = static_cast<int>(paths_.size());
  paths_.push_back(std::move(path));
  AddMethod(new ::grpc::internal::RpcServiceMethod(
      paths_.back().c_str(), ::grpc::internal::RpcMethod::CLIENT_STREAMING,
      nullptr));
  MarkMethodRaw(number);
  return number;
}

bool ServerCallRegistry::Insert(const std::shared_ptr<ServerCall>& call) {
  async::MutexLock lock(&mutex_);
  calls_.emplace(call.get(), call);
  return !closed_;
}

void ServerCallRegistry::Erase(const ServerCall* call) {
  async::MutexLock lock(&mutex_);
  if (calls_.erase(call) > 0 && calls_.empty()) empty_.NotifyAll();
}

void ServerCallRegistry::Close() {
  async::MutexLock lock(&mutex_);
  closed_ = true;
}

std::vector<std::shared_ptr<ServerCall>> ServerCallRegistry::calls() {
  std::vector<std::shared_ptr<ServerCall>> calls;
  async::MutexLock lock(&mutex_);
  for (const auto& [key, weak] : calls_) {
    if (auto call = weak.lock()) calls.push_back(std::move(call));
  }
  return calls;
}

void ServerCallRegistry::AwaitEmpty() {
  async::MutexLock lock(&mutex_);
  while (!calls_.empty()) empty_.Wait(&mutex_);
}

void ServedMethod::RequestNext() const {
  Gate::Entry entry(parts->gate.get());
  if (!entry) return;
  if (in_fragments) {
    std::make_shared<FragmentedServerCall>(*this)->RequestNext();
  } else {
    std::make_shared<UnaryServerCall>(*this)->RequestNext();
  }
}

// The handler's handle on a call.
class ServerCall::HandlerSide final : public IncomingCall {
 public:
  explicit HandlerSide(std::shared_ptr<ServerCall> call)
      : call_(std::move(call)) {}
  ~HandlerSide() override {
    if (!answered_) {
      call_->Reply(absl::UnavailableError("the worker dropped the call"));
    }
  }

  Payload TakeRequest() override {
    // Report an unreadable request to the handler as malformed.
    absl::StatusOr<Payload> request = call_->TakeRequest();
    return request.ok() ? *std::move(request) : Payload();
  }
  async::MonotonicTime deadline() const override { return call_->deadline(); }
  const std::shared_ptr<Cancellation>& cancellation() const override {
    return call_->cancellation();
  }
  absl::StatusOr<std::optional<net::Identity>> caller() const override {
    return call_->caller();
  }
  void Reply(absl::StatusOr<Payload> reply) override {
    HAWSER_CHECK(!std::exchange(answered_, true)) << "replied twice";
    call_->Reply(std::move(reply));
  }
  void Discard() override {
    HAWSER_CHECK(!std::exchange(answered_, true)) << "replied twice";
    call_->Reply(
        absl::AbortedError("a duplicate of this request is being served"));
  }

 private:
  const std::shared_ptr<ServerCall> call_;
  bool answered_ = false;
};

void ServerCall::RequestNext() {
  arrived_.self = shared_from_this();
  done_.self = shared_from_this();
  context().AsyncNotifyWhenDone(&done_);
  Request(&arrived_);
}

absl::StatusOr<Payload> ServerCall::TakeRequest() {
  async::MutexLock lock(&mutex_);
  if (released_) return absl::UnavailableError("the transport was shut down");
  return TakePayload();
}

absl::StatusOr<std::optional<net::Identity>> ServerCall::caller() {
  if (!parts_->credentials->has_tls()) return std::nullopt;
  async::MutexLock lock(&mutex_);
  if (released_) return absl::UnavailableError("the transport was shut down");
  return parts_->credentials->Caller(context());
}

void ServerCall::Reply(absl::StatusOr<Payload> reply) {
  const size_t limit = parts_->max_message_bytes;
  if (reply.ok() && reply->size() > limit) {
    reply = absl::ResourceExhaustedError(absl::StrCat(
        "a reply of ", reply->size(), " bytes exceeds the limit of ", limit,
        " bytes; raise GrpcTransportOptions::max_message_bytes at both ends"));
  }
  if (reply.ok()) {
    if (absl::Status fetched = reply->FetchAll(); !fetched.ok()) {
      reply = std::move(fetched);
    }
  }
  // Destroyed after the lock is released.
  std::shared_ptr<ServerCall> self = shared_from_this();
  async::MutexLock lock(&mutex_);
  if (replied_ || released_) return;
  Gate::Entry entry(parts_->gate.get());
  if (!entry) return;
  if (reply.ok() && reply->size() >= kMinCountedReply) {
    absl::StatusOr<net::PerPeerQuota::Reservation> memory =
        parts_->reply_quota->Admit(Client(), reply->size());
    if (memory.ok()) {
      reply_memory_ = *std::move(memory);
    } else {
      reply = absl::Status(
          memory.status().code(),
          absl::StrCat("the reply of ", reply->size(),
                       " bytes is dropped: ", memory.status().message()));
    }
  }
  replied_ = true;
  sent_.self = std::move(self);
  if (reply.ok()) {
    Finish(ToByteBuffer(*reply), &sent_);
  } else {
    // Only the caller may decide to retry. Disable gRPC's own retries, which a
    // foreign client may have enabled.
    if (absl::IsUnavailable(reply.status())) {
      context().AddTrailingMetadata("grpc-retry-pushback-ms", "-1");
    }
    FinishWithError(ToGrpcStatus(reply.status()), &sent_);
  }
}

void ServerCall::Abort() {
  Reply(absl::UnavailableError("the worker is shutting down"));
  cancellation_->Cancel();
}

void ServerCall::Release() {
  {
    async::MutexLock lock(&mutex_);
    if (!std::exchange(released_, true)) ReleaseGrpc();
  }
  Unregister();
}

void ServerCall::OnArrived(bool ok) {
  if (!ok) {
    // The server shuts down; there are no further events.
    done_.self.reset();
    return;
  }
  method_.RequestNext();
  deadline_ = FromGrpcTime(context().raw_deadline());
  if (!parts_->registry->Insert(shared_from_this())) {
    Abort();
    return;
  }
  absl::Status refused = parts_->credentials->CheckCall(context());
  if (refused.ok() && parts_->reply_quota->num_bytes() > 0) {
    refused = parts_->reply_quota->CheckRoom(Client());
  }
  if (!refused.ok()) {
    Reply(std::move(refused));
    return;
  }
  Begin();
}

void ServerCall::Handle() {
  method_.method->handler(std::make_unique<HandlerSide>(shared_from_this()));
}

void ServerCall::OnSent(bool) {
  async::MutexLock lock(&mutex_);
  reply_memory_ = net::PerPeerQuota::Reservation();
}

void ServerCall::OnDone(bool) {
  if (context().IsCancelled()) cancellation_->Cancel();
}

}  // namespace hawser::rpc
