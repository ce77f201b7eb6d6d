// The side of gRPC's completion queues without a layer above, with one thread
// at each end. It bounds the speed of frameworks on gRPC.
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "benchmarks/peer_process.h"
#include "benchmarks/rpc_side.h"
#include "grpcpp/channel.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/impl/rpc_method.h"
#include "grpcpp/impl/rpc_service_method.h"
#include "grpcpp/impl/service_type.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "grpcpp/support/async_unary_call.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"

namespace hawser::benchmarks {
namespace {

constexpr const char* kEchoPath = "/raw.Peer/Echo";
constexpr const char* kSinkPath = "/raw.Peer/Sink";
constexpr int kEcho = 0, kSink = 1;
constexpr int kArmed = 128;

class Service final : public ::grpc::Service {
 public:
  Service() {
    for (const char* path : {kEchoPath, kSinkPath}) {
      AddMethod(new ::grpc::internal::RpcServiceMethod(
          path, ::grpc::internal::RpcMethod::NORMAL_RPC, nullptr));
    }
    MarkMethodRaw(kEcho);
    MarkMethodRaw(kSink);
  }
  using ::grpc::Service::RequestAsyncUnary;
};

class ServerCall {
 public:
  ServerCall(int method, Service* service, ::grpc::ServerCompletionQueue* queue)
      : method_(method), service_(service), queue_(queue), writer_(&context_) {
    service->RequestAsyncUnary(method, &context_, &request_, &writer_, queue,
                               queue, this);
  }
  void OnEvent(bool ok) {
    if (!ok || answered_) {
      delete this;
      return;
    }
    new ServerCall(method_, service_, queue_);
    answered_ = true;
    const ::grpc::Slice nothing;
    writer_.Finish(
        method_ == kEcho ? request_ : ::grpc::ByteBuffer(&nothing, 1),
        ::grpc::Status::OK, this);
  }

 private:
  const int method_;
  Service* const service_;
  ::grpc::ServerCompletionQueue* const queue_;
  ::grpc::ServerContext context_;
  ::grpc::ByteBuffer request_;
  ::grpc::ServerAsyncResponseWriter<::grpc::ByteBuffer> writer_;
  bool answered_ = false;
};

struct ClientCall {
  ::grpc::ClientContext context;
  ::grpc::ByteBuffer reply;
  ::grpc::Status status;
  std::unique_ptr<::grpc::ClientAsyncResponseReader<::grpc::ByteBuffer>> reader;
};

class RawGrpcSide final : public RpcSide {
 public:
  explicit RawGrpcSide(std::unique_ptr<PeerProcess> server)
      : server_(std::move(server)) {
    ::grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    arguments.SetMaxSendMessageSize(-1);
    stub_ = std::make_unique<::grpc::GenericStub>(::grpc::CreateCustomChannel(
        server_->description(), ::grpc::InsecureChannelCredentials(),
        arguments));
  }
  ~RawGrpcSide() override {
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) delete static_cast<ClientCall*>(tag);
  }

  absl::StatusOr<double> SmallCall(int64_t calls) override {
    const ::grpc::ByteBuffer request = Bytes(64);
    return MedianMicroseconds(calls, [&] {
      Start(kEchoPath, request);
      return AwaitOne();
    });
  }
  absl::StatusOr<double> CallsInFlight(int64_t calls,
                                       int64_t in_flight) override {
    const ::grpc::ByteBuffer request = Bytes(64);
    return PerSecond(calls, [&]() -> absl::Status {
      for (int64_t i = 0; i < calls + in_flight; ++i) {
        if (i >= in_flight) RETURN_IF_ERROR(AwaitOne());
        if (i < calls) Start(kEchoPath, request);
      }
      return absl::OkStatus();
    });
  }
  absl::StatusOr<double> OneWay(int64_t calls, int64_t bytes) override {
    const ::grpc::ByteBuffer request = Bytes(static_cast<size_t>(bytes));
    return BytesPerSecond(calls, bytes, [&] {
      Start(kSinkPath, request);
      return AwaitOne();
    });
  }

 private:
  static ::grpc::ByteBuffer Bytes(size_t count) {
    const ::grpc::Slice slice(std::string(count, 'x'));
    return ::grpc::ByteBuffer(&slice, 1);
  }
  void Start(const char* path, const ::grpc::ByteBuffer& request) {
    auto* call = new ClientCall;
    call->reader =
        stub_->PrepareUnaryCall(&call->context, path, request, &queue_);
    call->reader->StartCall();
    call->reader->Finish(&call->reply, &call->status, call);
  }
  absl::Status AwaitOne() {
    void* tag = nullptr;
    bool ok = false;
    if (!queue_.Next(&tag, &ok))
      return absl::InternalError("the completion queue was shut down");
    const std::unique_ptr<ClientCall> call(static_cast<ClientCall*>(tag));
    if (call->status.ok()) return absl::OkStatus();
    return absl::UnavailableError(
        absl::StrCat("raw gRPC: ", call->status.error_message()));
  }

  const std::unique_ptr<PeerProcess> server_;
  ::grpc::CompletionQueue queue_;
  std::unique_ptr<::grpc::GenericStub> stub_;
};

}  // namespace

int ServeRawGrpc() {
  Service service;
  ::grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", ::grpc::InsecureServerCredentials(),
                           &port);
  builder.SetMaxReceiveMessageSize(-1);
  builder.RegisterService(&service);
  const auto queue = builder.AddCompletionQueue();
  const auto server = builder.BuildAndStart();
  if (server == nullptr) {
    std::cerr << "rpc: raw gRPC cannot listen on a port of 127.0.0.1\n";
    return 1;
  }
  for (int i = 0; i < kArmed; ++i) {
    new ServerCall(i % 2, &service, queue.get());
  }
  std::thread serving([&] {
    void* tag = nullptr;
    bool ok = false;
    while (queue->Next(&tag, &ok)) static_cast<ServerCall*>(tag)->OnEvent(ok);
  });
  std::cout << "ready 127.0.0.1:" << port << std::endl;
  std::cin.get();
  server->Shutdown();
  queue->Shutdown();
  serving.join();
  return 0;
}

absl::StatusOr<std::unique_ptr<RpcSide>> StartRawGrpcSide() {
  ASSIGN_OR_RETURN(auto server,
                   PeerProcess::Start({"/proc/self/exe", "--serve=raw_grpc"},
                                      "see the error above"));
  return std::make_unique<RawGrpcSide>(std::move(server));
}

}  // namespace hawser::benchmarks
