#include "rpc/grpc/raw_echo.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/impl/rpc_method.h"
#include "grpcpp/impl/rpc_service_method.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"
#include "grpcpp/support/async_unary_call.h"
#include "grpcpp/support/slice.h"

namespace hawser::rpc {
namespace {

constexpr char kPath[] = "/raw.Echo/Call";
constexpr int kArmed = 64;

}  // namespace

class RawEcho::Service final : public ::grpc::Service {
 public:
  Service() {
    AddMethod(new ::grpc::internal::RpcServiceMethod(
        kPath, ::grpc::internal::RpcMethod::NORMAL_RPC, nullptr));
    MarkMethodRaw(0);
  }
  using ::grpc::Service::RequestAsyncUnary;
};

class RawEcho::ServerCall {
 public:
  ServerCall(Service* service, ::grpc::ServerCompletionQueue* queue)
      : service_(service), queue_(queue), writer_(&context_) {
    service->RequestAsyncUnary(0, &context_, &request_, &writer_, queue, queue,
                               this);
  }
  void OnEvent(bool ok) {
    if (!ok || answered_) {
      delete this;
      return;
    }
    new ServerCall(service_, queue_);
    answered_ = true;
    writer_.Finish(request_, ::grpc::Status::OK, this);
  }

 private:
  Service* const service_;
  ::grpc::ServerCompletionQueue* const queue_;
  ::grpc::ServerContext context_;
  ::grpc::ByteBuffer request_;
  ::grpc::ServerAsyncResponseWriter<::grpc::ByteBuffer> writer_;
  bool answered_ = false;
};

class RawEcho::ClientCall {
 public:
  explicit ClientCall(RawEcho* echo)
      : reader_(echo->stub_->PrepareUnaryCall(&context_, kPath, echo->request_,
                                              &echo->client_queue_)) {
    reader_->StartCall();
    reader_->Finish(&reply_, &status_, this);
  }

 private:
  ::grpc::ClientContext context_;
  ::grpc::ByteBuffer reply_;
  ::grpc::Status status_;
  std::unique_ptr<::grpc::ClientAsyncResponseReader<::grpc::ByteBuffer>>
      reader_;
};

RawEcho::RawEcho() : service_(std::make_unique<Service>()) {}

RawEcho::~RawEcho() { Stop(); }

void RawEcho::Start(int in_flight, size_t bytes) {
  ::grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", ::grpc::InsecureServerCredentials(),
                           &port);
  builder.RegisterService(service_.get());
  server_queue_ = builder.AddCompletionQueue();
  server_ = builder.BuildAndStart();
  for (int i = 0; i < kArmed; ++i) {
    new ServerCall(service_.get(), server_queue_.get());
  }
  server_thread_ = std::thread([this] {
    void* tag = nullptr;
    bool ok = false;
    while (server_queue_->Next(&tag, &ok)) {
      static_cast<ServerCall*>(tag)->OnEvent(ok);
    }
  });
  stub_ = std::make_unique<::grpc::GenericStub>(::grpc::CreateChannel(
      absl::StrCat("127.0.0.1:", port), ::grpc::InsecureChannelCredentials()));
  const ::grpc::Slice slice(std::string(bytes, 'x'));
  request_ = ::grpc::ByteBuffer(&slice, 1);
  for (int i = 0; i < in_flight; ++i) new ClientCall(this);
  num_under_way_ = in_flight;
}

void RawEcho::AwaitOne() {
  void* tag = nullptr;
  bool ok = false;
  if (!client_queue_.Next(&tag, &ok)) return;
  delete static_cast<ClientCall*>(tag);
  if (stopping_) {
    --num_under_way_;
  } else {
    new ClientCall(this);
  }
}

void RawEcho::Stop() {
  if (std::exchange(stopping_, true)) return;
  while (num_under_way_ > 0) AwaitOne();
  stub_.reset();
  client_queue_.Shutdown();
  if (server_ == nullptr) return;
  server_->Shutdown();
  server_queue_->Shutdown();
  server_thread_.join();
}

}  // namespace hawser::rpc
