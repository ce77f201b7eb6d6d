#include "rpc/functions/function_name.h"

#include "async/status_macros.h"
#include "net/wire_text.h"

namespace hawser::rpc {

absl::Status CheckFunctionName(std::string_view name,
                               std::string_view signature) {
  RETURN_IF_ERROR(net::CheckUtf8("the name of the remote function", name));
  return net::CheckUtf8("the signature of the remote function", signature);
}

}  // namespace hawser::rpc
