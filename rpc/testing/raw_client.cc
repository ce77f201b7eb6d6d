#include "rpc/testing/raw_client.h"

#include <chrono>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "async/clock.h"
#include "async/future.h"
#include "async/mutex.h"
#include "async/status_macros.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"
#include "grpcpp/support/status.h"
#include "net/auth/peer_verification.h"
#include "rpc/agent/agent_options.h"
#include "rpc/grpc/status.h"

namespace hawser::rpc {

class RawClient::Link {
 public:
  virtual ~Link() = default;
  virtual absl::StatusOr<std::string> Send(const ConnectionTarget& to,
                                           std::string_view path,
                                           Payload request) = 0;
};

class RawClient::TransportLink final : public Link {
 public:
  explicit TransportLink(std::unique_ptr<Transport> transport)
      : transport_(std::move(transport)) {}
  ~TransportLink() override { transport_->Shutdown(); }

  absl::StatusOr<std::string> Send(const ConnectionTarget& to,
                                   std::string_view path,
                                   Payload request) override {
    ASSIGN_OR_RETURN(std::shared_ptr<Connection> connection,
                     transport_->Connect(to));
    async::Promise<std::string> replied;
    async::Future<std::string> reply = replied.future();
    connection->Call(
        path, std::move(request), async::kNever,
        [replied = std::move(replied)](absl::StatusOr<Payload> bytes) mutable {
          if (!bytes.ok()) {
            replied.Set(bytes.status());
          } else {
            replied.Set(bytes->Flatten());
          }
        });
    return std::move(reply).Wait();
  }

 private:
  const std::unique_ptr<Transport> transport_;
};

class RawClient::GrpcLink final : public Link {
 public:
  explicit GrpcLink(GrpcOptions options) : options_(std::move(options)) {}

  absl::StatusOr<std::string> Send(const ConnectionTarget& to,
                                   std::string_view path,
                                   Payload request) override {
    ASSIGN_OR_RETURN(const std::string bytes, request.Flatten());
    const ::grpc::Slice slice(bytes);
    const ::grpc::ByteBuffer buffer(&slice, 1);
    ::grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::seconds(20));
    context.set_wait_for_ready(true);
    options_.credentials->Sign(context);
    for (const auto& [name, value] : options_.metadata) {
      context.AddMetadata(name, value);
    }
    ::grpc::GenericStub stub(ChannelTo(to));
    ::grpc::ByteBuffer reply;
    async::Promise<void> done;
    async::Future<void> ended = done.future();
    stub.UnaryCall(&context, std::string(path), ::grpc::StubOptions(), &buffer,
                   &reply, [&done](const ::grpc::Status& status) {
                     done.Set(FromGrpcStatus(status));
                   });
    RETURN_IF_ERROR(std::move(ended).Wait());
    ::grpc::Slice flat;
    if (!reply.DumpToSingleSlice(&flat).ok()) {
      return absl::DataLossError("the reply has no bytes");
    }
    return std::string(reinterpret_cast<const char*>(flat.begin()),
                       flat.size());
  }

 private:
  std::shared_ptr<::grpc::Channel> ChannelTo(const ConnectionTarget& to) {
    async::MutexLock lock(&mutex_);
    std::shared_ptr<::grpc::Channel>& channel =
        channels_[{to.address, to.worker}];
    if (channel == nullptr) {
      channel = net::PeerVerification(options_.credentials, to.worker, to.roles)
                    .CreateChannel(to.address, options_.arguments);
    }
    return channel;
  }

  const GrpcOptions options_;
  async::Mutex mutex_;
  // By address and worker.
  absl::flat_hash_map<std::pair<std::string, std::string>,
                      std::shared_ptr<::grpc::Channel>>
      channels_ ABSL_GUARDED_BY(mutex_);
};

RawClient::RawClient(std::unique_ptr<Transport> transport)
    : link_(std::make_unique<TransportLink>(std::move(transport))) {}

RawClient::RawClient(GrpcOptions options)
    : link_(std::make_unique<GrpcLink>(std::move(options))) {}

RawClient::~RawClient() = default;

absl::StatusOr<std::string> RawClient::Send(const ConnectionTarget& to,
                                            std::string_view path,
                                            Payload request) {
  return link_->Send(to, path, std::move(request));
}

absl::StatusOr<std::string> RawClient::Call(const std::string& address,
                                            const RequestHeader& header,
                                            std::string_view path,
                                            std::string body) {
  ASSIGN_OR_RETURN(Payload request,
                   EncodeMessage({.body = std::move(body),
                                  .header = EncodeRequestHeader(header)},
                                 counters_));
  return Send({.address = address, .worker = std::string(header.destination)},
              path, std::move(request));
}

absl::StatusOr<std::string> RawClient::Call(const WorkerInfo& source,
                                            const WorkerInfo& to,
                                            std::string_view path,
                                            std::string body) {
  const std::string job = AgentOptions().job;
  return Call(to.address,
              {.job = job,
               .source = source.name,
               .source_rank = source.id,
               .source_incarnation = source.incarnation,
               .destination = to.name,
               .destination_incarnation = to.incarnation,
               .call_id = ++last_call_,
               .autograd = std::nullopt},
              path, std::move(body));
}

}  // namespace hawser::rpc
