// Names and signatures of remote functions as they may be sent.

#ifndef HAWSER_RPC_FUNCTIONS_FUNCTION_NAME_H_
#define HAWSER_RPC_FUNCTIONS_FUNCTION_NAME_H_

#include <string_view>

#include "absl/status/status.h"

namespace hawser::rpc {

// kInvalidArgument, naming the function, unless both are UTF-8: a signature is
// not if a type's TypeName is not.
absl::Status CheckFunctionName(std::string_view name,
                               std::string_view signature);

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_FUNCTIONS_FUNCTION_NAME_H_
