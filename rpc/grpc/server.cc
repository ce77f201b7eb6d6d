#include "rpc/grpc/server.h"

#include <chrono>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/check.h"
#include "async/mutex.h"
#include "grpcpp/impl/rpc_method.h"
#include "grpcpp/impl/rpc_service_method.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/async_unary_call.h"
#include "grpcpp/support/byte_buffer.h"
#include "rpc/grpc/byte_buffer.h"
#include "rpc/grpc/poller.h"
#include "rpc/grpc/status.h"

namespace hawser::rpc {
namespace {

// How many calls of a method can be taken over before the first is handled.
constexpr int kArmedHot = 64;
constexpr int kArmedOther = 4;

// How long a stopping server waits for its last answers to be sent.
constexpr std::chrono::milliseconds kLastAnswers(500);

async::MonotonicTime FromGrpcTime(gpr_timespec time) {
  if (gpr_time_cmp(time, gpr_inf_future(time.clock_type)) == 0) {
    return async::kNever;
  }
  const gpr_timespec monotonic =
      gpr_convert_clock_type(time, GPR_CLOCK_MONOTONIC);
  return async::MonotonicTime(std::chrono::seconds(monotonic.tv_sec) +
                              std::chrono::nanoseconds(monotonic.tv_nsec));
}

}  // namespace

int GrpcMethods::Add(const std::string& path) {
  AddMethod(new ::grpc::internal::RpcServiceMethod(
      path.c_str(), ::grpc::internal::RpcMethod::NORMAL_RPC, nullptr));
  MarkMethodRaw(num_methods_);
  return num_methods_++;
}

class GrpcServer::Registry {
 public:
  // False once it was closed: the call is not to be handled.
  bool Insert(const std::shared_ptr<ActiveCall>& call) {
    async::MutexLock lock(&mutex_);
    calls_.emplace(call.get(), call);
    return !closed_;
  }

  void Erase(const ActiveCall* call) {
    async::MutexLock lock(&mutex_);
    if (calls_.erase(call) > 0 && calls_.empty()) empty_.NotifyAll();
  }

  void Close() {
    async::MutexLock lock(&mutex_);
    closed_ = true;
  }

  std::vector<std::shared_ptr<ActiveCall>> calls() {
    std::vector<std::shared_ptr<ActiveCall>> calls;
    async::MutexLock lock(&mutex_);
    for (const auto& [key, weak] : calls_) {
      if (auto call = weak.lock()) calls.push_back(std::move(call));
    }
    return calls;
  }

  // Calls that are being destroyed still erase themselves.
  void AwaitEmpty() {
    async::MutexLock lock(&mutex_);
    while (!calls_.empty()) empty_.Wait(&mutex_);
  }

 private:
  async::Mutex mutex_;
  async::CondVar empty_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_map<const ActiveCall*, std::weak_ptr<ActiveCall>> calls_
      ABSL_GUARDED_BY(mutex_);
};

// One call, from waiting for it until it is done. Steps, each an event:
//
//   arrived  with its request, or not at all; another is then waited for.
//   done     the caller has the answer or gave up; may come at any time.
//   sent     the answer was handed to gRPC.
//
// Each pending event holds a reference, as does the handler's handle. gRPC's
// parts live as long as this, but at most until Release.
class GrpcServer::ActiveCall final
    : public std::enable_shared_from_this<ActiveCall> {
 public:
  ActiveCall(GrpcServer* server, int method)
      : server_(*server), method_(method) {
    parts_.emplace();
  }

  ~ActiveCall() { Release(); }

  void Arm() {
    arrived_.self = shared_from_this();
    done_.self = shared_from_this();
    parts_->context.AsyncNotifyWhenDone(&done_);
    const auto& [service, number] = server_.places_[method_];
    service->Request(number, &parts_->context, &parts_->request,
                     &parts_->writer, server_.queue_, &arrived_);
  }

  absl::StatusOr<Payload> TakeRequest() {
    async::MutexLock lock(&mutex_);
    if (!parts_.has_value()) {
      return absl::UnavailableError("the transport was shut down");
    }
    return ToPayload(parts_->request);
  }

  absl::StatusOr<std::optional<net::Identity>> caller() {
    if (!credentials_->has_tls()) return std::nullopt;
    async::MutexLock lock(&mutex_);
    if (!parts_.has_value()) {
      return absl::UnavailableError("the transport was shut down");
    }
    return credentials_->Caller(parts_->context);
  }

  async::MonotonicTime deadline() const { return deadline_; }
  const std::shared_ptr<Cancellation>& cancellation() const {
    return cancellation_;
  }

  // Sends the answer unless one was sent or gRPC is gone.
  void Reply(absl::StatusOr<Payload> reply) {
    if (reply.ok() && reply->size() > max_message_bytes_) {
      reply = absl::ResourceExhaustedError(absl::StrCat(
          "a reply of ", reply->size(), " bytes exceeds the limit of ",
          max_message_bytes_,
          " bytes; raise GrpcTransportOptions::max_message_bytes at both "
          "ends"));
    }
    if (reply.ok()) {
      if (absl::Status fetched = reply->FetchAll(); !fetched.ok()) {
        reply = std::move(fetched);
      }
    }
    // Released after the lock.
    std::shared_ptr<ActiveCall> self = shared_from_this();
    async::MutexLock lock(&mutex_);
    if (replied_ || !parts_.has_value()) return;
    Gate::Pass pass(gate_.get());
    if (!pass) return;
    replied_ = true;
    sent_.self = std::move(self);
    if (reply.ok()) {
      parts_->writer.Finish(ToByteBuffer(*reply), ::grpc::Status::OK, &sent_);
    } else {
      parts_->writer.FinishWithError(ToGrpcStatus(reply.status()), &sent_);
    }
  }

  // The server stops: nobody will want the answer of a handler any more.
  void CutOff() {
    Reply(absl::UnavailableError("the worker is shutting down"));
    cancellation_->Cancel();
  }

  // No event will come.
  void Release() {
    {
      async::MutexLock lock(&mutex_);
      parts_.reset();
    }
    registry_->Erase(this);
  }

 private:
  struct Event final : public CompletionEvent {
    using Method = void (ActiveCall::*)(bool);
    explicit Event(Method event_method) : method(event_method) {}

    void OnEvent(bool ok) override {
      const std::shared_ptr<ActiveCall> call = std::move(self);
      (call.get()->*method)(ok);
    }

    const Method method;
    std::shared_ptr<ActiveCall> self;
  };

  // What is gRPC's.
  struct Parts {
    ::grpc::ServerContext context;
    ::grpc::ByteBuffer request;
    ::grpc::ServerAsyncResponseWriter<::grpc::ByteBuffer> writer{&context};
  };

  void OnArrived(bool ok);
  void OnDone(bool);
  void OnSent(bool) {}

  // Gone when a handler that outlives the server answers.
  GrpcServer& server_;
  const size_t max_message_bytes_ = server_.max_message_bytes_;
  const std::shared_ptr<Gate> gate_ = server_.gate_;
  const std::shared_ptr<Registry> registry_ = server_.registry_;
  const std::shared_ptr<const net::Credentials> credentials_ =
      server_.credentials_;
  const int method_;
  const std::shared_ptr<Cancellation> cancellation_ =
      std::make_shared<Cancellation>();
  Event arrived_{&ActiveCall::OnArrived};
  Event done_{&ActiveCall::OnDone};
  Event sent_{&ActiveCall::OnSent};
  async::MonotonicTime deadline_ = async::kNever;

  async::Mutex mutex_;
  bool replied_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<Parts> parts_;
};

// What a handler gets.
class GrpcServer::Handle final : public IncomingCall {
 public:
  explicit Handle(std::shared_ptr<ActiveCall> call) : call_(std::move(call)) {}
  ~Handle() override {
    if (!answered_) {
      call_->Reply(absl::UnavailableError("the worker dropped the call"));
    }
  }

  Payload TakeRequest() override {
    // A request that cannot be read is malformed to the handler.
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
    HAWSER_CHECK(!std::exchange(answered_, true)) << "answered twice";
    call_->Reply(std::move(reply));
  }
  void Discard() override {
    HAWSER_CHECK(!std::exchange(answered_, true)) << "answered twice";
    call_->Reply(absl::AbortedError("a copy of this request is being served"));
  }

 private:
  const std::shared_ptr<ActiveCall> call_;
  bool answered_ = false;
};

void GrpcServer::ActiveCall::OnArrived(bool ok) {
  if (!ok) {
    // The server stops; no other event comes.
    done_.self.reset();
    return;
  }
  server_.Arm(method_);
  deadline_ = FromGrpcTime(parts_->context.raw_deadline());
  if (!registry_->Insert(shared_from_this())) {
    CutOff();
    return;
  }
  if (absl::Status refused = credentials_->CheckCall(parts_->context);
      !refused.ok()) {
    Reply(std::move(refused));
    return;
  }
  server_.methods_[method_].handler(
      std::make_unique<Handle>(shared_from_this()));
}

void GrpcServer::ActiveCall::OnDone(bool) {
  if (parts_->context.IsCancelled()) cancellation_->Cancel();
}

GrpcServer::GrpcServer(std::vector<TransportMethod> methods,
                       ::grpc::ServerBuilder& builder,
                       ::grpc::ServerCompletionQueue* queue,
                       std::shared_ptr<Gate> gate,
                       std::shared_ptr<const net::Credentials> credentials,
                       size_t max_message_bytes)
    : methods_(std::move(methods)),
      queue_(queue),
      gate_(std::move(gate)),
      credentials_(std::move(credentials)),
      max_message_bytes_(max_message_bytes),
      registry_(std::make_shared<Registry>()) {
  for (const TransportMethod& method : methods_) {
    GrpcMethods& service =
        services_[method.path.substr(0, method.path.rfind('/'))];
    places_.emplace_back(&service, service.Add(method.path));
  }
  for (auto& [name, service] : services_) builder.RegisterService(&service);
}

GrpcServer::~GrpcServer() = default;

void GrpcServer::Start(std::unique_ptr<::grpc::Server> server) {
  server_ = std::move(server);
  for (size_t i = 0; i < methods_.size(); ++i) {
    const int armed = methods_[i].hot ? kArmedHot : kArmedOther;
    for (int n = 0; n < armed; ++n) Arm(static_cast<int>(i));
  }
}

void GrpcServer::Arm(int method) {
  Gate::Pass pass(gate_.get());
  if (!pass) return;
  std::make_shared<ActiveCall>(this, method)->Arm();
}

void GrpcServer::Stop() {
  registry_->Close();
  for (const auto& call : registry_->calls()) call->CutOff();
  server_->Shutdown(std::chrono::system_clock::now() + kLastAnswers);
}

void GrpcServer::Release() {
  for (const auto& call : registry_->calls()) call->Release();
  registry_->AwaitEmpty();
  server_.reset();
}

}  // namespace hawser::rpc
