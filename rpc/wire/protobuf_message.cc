#include "rpc/wire/protobuf_message.h"

#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace hawser::rpc::internal {
namespace {

absl::string_view ToAbsl(std::string_view text) {
  return {text.data(), text.size()};
}

}  // namespace

absl::Status UnparsableMessage(std::string_view type) {
  return absl::InternalError(
      absl::StrCat("the bytes received are not a valid ", ToAbsl(type)));
}

absl::Status UnserializableMessage(std::string_view type) {
  return absl::InvalidArgumentError(
      absl::StrCat("a ", ToAbsl(type),
                   " above 2 GiB or with missing fields cannot be sent"));
}

}  // namespace hawser::rpc::internal
