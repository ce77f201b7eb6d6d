#include "rpc/wire/protobuf_message.h"

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace hawser::rpc::internal {

absl::Status UnparsableMessage(std::string_view type) {
  return absl::InternalError(
      absl::StrCat("the bytes received are not a valid ", std::string(type)));
}

absl::Status UnserializableMessage(std::string_view type) {
  return absl::InvalidArgumentError(
      absl::StrCat("a ", std::string(type),
                   " above 2 GiB or with missing fields cannot be sent"));
}

}  // namespace hawser::rpc::internal
