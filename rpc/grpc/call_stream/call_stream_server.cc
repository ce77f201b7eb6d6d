#include "rpc/grpc/call_stream/call_stream_server.h"

#include <atomic>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/mutex.h"
#include "grpcpp/impl/rpc_method.h"
#include "grpcpp/impl/rpc_service_method.h"
#include "grpcpp/impl/service_type.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/async_stream.h"
#include "grpcpp/support/byte_buffer.h"
#include "net/auth/identity.h"
#include "rpc/grpc/status.h"
#include "rpc/link/link_server.h"

namespace hawser::rpc {
namespace {

constexpr char kOpenPath[] = "/hawser.v1.CallStreamService/Open";
// Streams that gRPC can accept before the first is handled.
constexpr int kRequested = 4;

// The service for gRPC, with messages as raw bytes.
class StreamService final : public ::grpc::Service {
 public:
  StreamService() {
    AddMethod(new ::grpc::internal::RpcServiceMethod(
        kOpenPath, ::grpc::internal::RpcMethod::BIDI_STREAMING, nullptr));
    MarkMethodRaw(0);
  }
  using ::grpc::Service::RequestAsyncBidiStreaming;
};

}  // namespace

// Outlives the server while streams refer to it.
class CallStreamServer::Acceptor
    : public std::enable_shared_from_this<Acceptor> {
 public:
  explicit Acceptor(Options options)
      : options_(std::move(options)),
        methods_(std::make_shared<const LinkMethods>(options_.methods)) {}

  StreamService& service() { return service_; }
  const Options& options() const { return options_; }
  Poller* poller() const { return poller_; }

  void Start(Poller* poller) {
    poller_ = poller;
    for (int i = 0; i < kRequested; ++i) RequestNext();
  }
  void RequestNext();

  // Serves an accepted stream; false if the server stops.
  bool Add(const std::shared_ptr<Stream>& stream,
           std::optional<net::Identity> caller);

  void Stop();
  void Release();
  int64_t num_accepted() const {
    return num_accepted_.load(std::memory_order_relaxed);
  }
  int64_t num_calls();
  // Adds the calls of a stream that is destroyed.
  void AddCalls(uint64_t number) {
    num_past_calls_.fetch_add(static_cast<int64_t>(number),
                              std::memory_order_relaxed);
  }

 private:
  std::vector<std::shared_ptr<Stream>> Streams();

  const Options options_;
  const std::shared_ptr<const LinkMethods> methods_;
  StreamService service_;
  Poller* poller_ = nullptr;
  std::atomic<int64_t> num_accepted_{0};
  std::atomic<int64_t> num_past_calls_{0};

  async::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::weak_ptr<Stream>> streams_ ABSL_GUARDED_BY(mutex_);
};

// gRPC objects live as long as this, but at most until ReleaseGrpc: a handler
// may keep a call longer than the server lives.
class CallStreamServer::Stream final : public CallStream {
 public:
  explicit Stream(std::shared_ptr<Acceptor> acceptor)
      : CallStream(
            {.poller = acceptor->poller(),
             .gate = acceptor->options().gate,
             .max_message_bytes = acceptor->options().max_message_bytes}),
        acceptor_(std::move(acceptor)) {
    grpc_.emplace();
  }
  ~Stream() override { acceptor_->AddCalls(num_received()); }

  int64_t num_calls() const { return static_cast<int64_t>(num_received()); }

  // Requests a stream from gRPC. Call once, with the gate entered.
  void Request() {
    arrived_.self = shared_from_this();
    acceptor_->service().RequestAsyncBidiStreaming(
        0, &grpc_->context, &grpc_->stream, acceptor_->options().queue,
        acceptor_->options().queue, &arrived_);
  }

  void ReleaseGrpc() {
    async::MutexLock lock(&mutex_);
    grpc_.reset();
  }

 private:
  struct Grpc {
    Grpc() : stream(&context) {}

    ::grpc::ServerContext context;
    ::grpc::ServerAsyncReaderWriter<::grpc::ByteBuffer, ::grpc::ByteBuffer>
        stream;
  };

  void OnArrived(bool ok) {
    // Otherwise the server shuts down.
    if (!ok) return;
    acceptor_->RequestNext();
    const net::Credentials& credentials = *acceptor_->options().credentials;
    absl::Status refused = credentials.CheckCall(grpc_->context);
    absl::StatusOr<std::optional<net::Identity>> caller = std::nullopt;
    if (refused.ok() && credentials.has_tls()) {
      caller = credentials.Caller(grpc_->context);
      refused = caller.status();
    }
    LimitReplies(acceptor_->options().reply_quota,
                 credentials.ClientOf(grpc_->context));
    const auto self = std::static_pointer_cast<Stream>(shared_from_this());
    if (refused.ok() && !acceptor_->Add(self, *std::move(caller))) {
      refused = absl::UnavailableError("the worker is shutting down");
    }
    if (!refused.ok()) {
      Close(std::move(refused));
      return;
    }
    SendConfirmation();
    Start();
  }

  void StartRead(::grpc::ByteBuffer* message, Event* event) override {
    grpc_->stream.Read(message, event);
  }
  void StartWrite(const ::grpc::ByteBuffer& message, Event* event) override {
    grpc_->stream.Write(message, event);
  }
  // The client has closed or lost the stream.
  void OnReadsEnded() override {
    Close(absl::UnavailableError("the client closed the stream"));
  }
  void EndStreamLocked(const absl::Status& status) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    status_ = ToGrpcStatus(status);
    if (!writing()) {
      FinishLocked();
    } else if (absl::IsResourceExhausted(status)) {
      // The peer does not read, so the write may never end.
      grpc_->context.TryCancel();
    }
  }
  void OnLastWriteLocked() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    FinishLocked();
  }

  // The only operation that may be in progress is a read, which it ends.
  void FinishLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    Gate::Entry entry(options().gate.get());
    if (!entry) return;
    finished_.self = shared_from_this();
    grpc_->stream.Finish(status_, &finished_);
  }
  void OnFinished(bool) {}

  const std::shared_ptr<Acceptor> acceptor_;
  Event arrived_{this, ToCallback(&Stream::OnArrived)};
  Event finished_{this, ToCallback(&Stream::OnFinished)};
  std::optional<Grpc> grpc_;
  ::grpc::Status status_;
};

void CallStreamServer::Acceptor::RequestNext() {
  Gate::Entry entry(options_.gate.get());
  if (!entry) return;
  std::make_shared<Stream>(shared_from_this())->Request();
}

bool CallStreamServer::Acceptor::Add(const std::shared_ptr<Stream>& stream,
                                     std::optional<net::Identity> caller) {
  async::MutexLock lock(&mutex_);
  if (stopped_) return false;
  std::erase_if(streams_, [](const auto& weak) { return weak.expired(); });
  streams_.push_back(stream);
  stream->SetHandler(
      std::make_shared<LinkServer>(stream, methods_, std::move(caller)));
  num_accepted_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

std::vector<std::shared_ptr<CallStreamServer::Stream>>
CallStreamServer::Acceptor::Streams() {
  std::vector<std::shared_ptr<Stream>> streams;
  async::MutexLock lock(&mutex_);
  for (const auto& weak : streams_) {
    if (auto stream = weak.lock()) streams.push_back(std::move(stream));
  }
  return streams;
}

int64_t CallStreamServer::Acceptor::num_calls() {
  int64_t number = 0;
  for (const auto& stream : Streams()) number += stream->num_calls();
  return number + num_past_calls_.load(std::memory_order_relaxed);
}

void CallStreamServer::Acceptor::Stop() {
  {
    async::MutexLock lock(&mutex_);
    stopped_ = true;
  }
  for (const auto& stream : Streams()) {
    stream->Close(absl::UnavailableError("the worker is shutting down"));
  }
}

void CallStreamServer::Acceptor::Release() {
  for (const auto& stream : Streams()) stream->ReleaseGrpc();
}

CallStreamServer::CallStreamServer(Options options,
                                   ::grpc::ServerBuilder& builder)
    : acceptor_(std::make_shared<Acceptor>(std::move(options))) {
  builder.RegisterService(&acceptor_->service());
}

CallStreamServer::~CallStreamServer() = default;

void CallStreamServer::Start(Poller* poller) { acceptor_->Start(poller); }

int64_t CallStreamServer::num_accepted() const {
  return acceptor_->num_accepted();
}

int64_t CallStreamServer::num_calls() { return acceptor_->num_calls(); }

void CallStreamServer::Stop() { acceptor_->Stop(); }

void CallStreamServer::Release() { acceptor_->Release(); }

}  // namespace hawser::rpc
