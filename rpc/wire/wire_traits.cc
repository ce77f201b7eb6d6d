#include "rpc/wire/wire_traits.h"

#include "absl/strings/str_cat.h"

namespace hawser::rpc::internal {
namespace {

absl::string_view ToAbsl(std::string_view text) {
  return {text.data(), text.size()};
}

}  // namespace

absl::Status IntegerOutOfRange(std::string_view type) {
  return absl::InvalidArgumentError(
      absl::StrCat("the number received does not fit ", ToAbsl(type)));
}

absl::Status NullInOptional(std::string_view type) {
  return absl::InvalidArgumentError(
      absl::StrCat("an ", ToAbsl(type),
                   " has a value that is encoded as null, such as an undefined "
                   "tensor, and would be received as nullopt"));
}

absl::Status RepeatedKey() {
  return absl::InvalidArgumentError("the map received has a duplicate key");
}

}  // namespace hawser::rpc::internal
