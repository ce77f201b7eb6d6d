#include "net/name.h"

#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace hawser::net {

absl::Status ValidateName(std::string_view what, std::string_view name) {
  constexpr size_t kMaxNameLength = 127;
  const auto is_alphanumeric = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c));
  };
  const bool fits = !name.empty() && name.size() <= kMaxNameLength;
  bool valid = fits && is_alphanumeric(name.front());
  for (char c : name.substr(0, kMaxNameLength)) {
    valid = valid && (is_alphanumeric(c) || c == '-' || c == '_' || c == ':' ||
                      c == '.');
  }
  if (valid) return absl::OkStatus();
  const std::string_view shown = name.substr(0, kMaxNameLength);
  return absl::InvalidArgumentError(absl::StrCat(
      absl::string_view(what.data(), what.size()), " name '",
      absl::CHexEscape(absl::string_view(shown.data(), shown.size())),
      "' must be 1 to ", kMaxNameLength,
      " letters, digits and \"-_:.\", starting with a letter or digit",
      fits ? "" : absl::StrCat("; it has ", name.size(), " characters")));
}

}  // namespace hawser::net
