// Bodies of the messages that call a registered function: `CallRequest` and
// `CallReply` of proto/rpc.proto.

#ifndef HAWSER_RPC_WIRE_CALL_BODY_H_
#define HAWSER_RPC_WIRE_CALL_BODY_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace hawser::rpc {

struct CallBody {
  std::string_view function;
  std::string_view signature;
  // One encoded value per parameter.
  std::string_view arguments;
};

std::string EncodeCallBody(const CallBody& body);
// Returns views of `bytes`. kInternal if they are malformed.
absl::StatusOr<CallBody> ParseCallBody(std::string_view bytes);

// `results`: the encoded result of the function.
std::string EncodeCallResults(std::string_view results);
// Returns a view of `bytes`. kInternal if they are malformed.
absl::StatusOr<std::string_view> ParseCallResults(std::string_view bytes);

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_WIRE_CALL_BODY_H_
