#include "optim/named_factories.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace hawser::optim::internal {
namespace {

constexpr size_t kMaxNameLength = 100;

bool IsNameCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' ||
         c == '-' || c == '.';
}

}  // namespace

absl::Status CheckNamedFactory(std::string_view kind, std::string_view name,
                               bool has_factory) {
  if (name.empty() || name.size() > kMaxNameLength ||
      !std::all_of(name.begin(), name.end(), IsNameCharacter)) {
    return absl::InvalidArgumentError(
        absl::StrCat(std::string(kind), " needs a name of 1 to ",
                     kMaxNameLength, " letters, digits, '_', '-' and '.'"));
  }
  if (has_factory) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      std::string(kind), " \"", std::string(name), "\" needs a factory"));
}

absl::Status RepeatedFactory(std::string_view kind, std::string_view name) {
  return absl::AlreadyExistsError(
      absl::StrCat("this process has ", std::string(kind), " \"",
                   std::string(name), "\" already"));
}

}  // namespace hawser::optim::internal
