// Declarations of protobuf methods with their types.

#ifndef HAWSER_RPC_FUNCTIONS_SERVICE_METHOD_H_
#define HAWSER_RPC_FUNCTIONS_SERVICE_METHOD_H_

#include <string_view>

#include "rpc/functions/method_definition.h"
#include "rpc/wire/protobuf_message.h"

namespace hawser::rpc {

// A method of a protobuf service, declared once, typed, and known by its full
// name:
//
//   inline constexpr rpc::ServiceMethod<PullRequest, PullReply> kPull{
//       "hawser.v1.TableService.Pull"};
//
// A service registers a handler for it, and other workers call it:
// rpc/agent/service_host.h. Its definition, with the delivery class, is looked
// up at the first use and remembered.
//
// Thread-safe. Not copyable: constants are used by reference.
template <class Request, class Reply>
class ServiceMethod : public MethodName {
  static_assert(internal::ProtobufMessage<Request> &&
                    internal::ProtobufMessage<Reply>,
                "a service's methods take and return protobuf messages");

 public:
  // `name` must be a literal, or outlive the declaration.
  constexpr explicit ServiceMethod(std::string_view name) : MethodName(name) {}
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_FUNCTIONS_SERVICE_METHOD_H_
