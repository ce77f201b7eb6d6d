// Test client that speaks the wire protocol without an agent.

#ifndef HAWSER_RPC_TESTING_RAW_CLIENT_H_
#define HAWSER_RPC_TESTING_RAW_CLIENT_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/check.h"
#include "grpcpp/support/channel_arguments.h"
#include "net/auth/credentials.h"
#include "proto/rpc.pb.h"
#include "rpc/functions/function.h"
#include "rpc/identity/worker_info.h"
#include "rpc/transport/payload.h"
#include "rpc/transport/transfer_counters.h"
#include "rpc/transport/transport.h"
#include "rpc/wire/encoder.h"
#include "rpc/wire/message_codec.h"
#include "rpc/wire/wire_traits.h"

namespace hawser::rpc {

// Sends arbitrary bytes, or bodies with arbitrary headers, to the methods of
// workers and stores and waits for the replies. Thread-safe.
//
// Errors are those of the peer, with their payloads, and of the transport.
class RawClient {
 public:
  struct GrpcOptions {
    // Certificate and token; by default neither.
    std::shared_ptr<const net::Credentials> credentials =
        net::Credentials::Insecure();
    // Settings of the channels; by default those of gRPC.
    ::grpc::ChannelArguments arguments = {};
    // Metadata of each call, in addition to that of `credentials`.
    std::vector<std::pair<std::string, std::string>> metadata = {};
  };

  // A client over `transport`, which it shuts down at the end.
  explicit RawClient(std::unique_ptr<Transport> transport);
  // A client over gRPC's own client library, as any program may use it. A call
  // waits up to 20 s for its connection and its reply.
  explicit RawClient(GrpcOptions options);
  ~RawClient();
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  // Sends `request` as it is to the method at `path`; returns the reply.
  absl::StatusOr<std::string> Send(const ConnectionTarget& to,
                                   std::string_view path, Payload request);

  // Sends `body`, a serialized message without header, with `header` as it is
  // to the worker at `address`.
  absl::StatusOr<std::string> Call(const std::string& address,
                                   const RequestHeader& header,
                                   std::string_view path, std::string body);

  // Same, with the header of a message from `source` to `to` in the default
  // job, and a call id of its own.
  absl::StatusOr<std::string> Call(const WorkerInfo& source,
                                   const WorkerInfo& to, std::string_view path,
                                   std::string body);

  // Path of the method that calls functions.
  static constexpr char kCallPath[] = "/hawser.v1.WorkerService/Call";

  // Returns the body of a call of `function`.
  template <class R, class... A>
  static std::string FunctionCall(const Function<R(A...)>& function,
                                  const std::type_identity_t<A>&... arguments) {
    Encoder encoder;
    absl::Status status;
    (status.Update(WireTraits<A>::Encode(encoder, arguments)), ...);
    HAWSER_CHECK(status.ok()) << status;
    v1::CallRequest request;
    request.set_function(std::string(function.name()));
    request.set_signature(function.Signature());
    HAWSER_CHECK(
        request.mutable_arguments()->ParseFromString(encoder.TakeValues()));
    return request.SerializeAsString();
  }

 private:
  // One way to send bytes.
  class Link;
  class TransportLink;
  class GrpcLink;

  const std::unique_ptr<Link> link_;
  TransferCounters counters_;
  std::atomic<uint64_t> last_call_{0};
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_TESTING_RAW_CLIENT_H_
