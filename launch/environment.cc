#include "launch/environment.h"

#include <charconv>
#include <cstdlib>
#include <string_view>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace hawser::launch {

absl::StatusOr<std::optional<int>> IntOrEnvironment(std::optional<int> value,
                                                    const char* variable) {
  if (value.has_value()) return value;
  const char* text = std::getenv(variable);
  if (text == nullptr) return std::optional<int>();
  const std::string_view view(text);
  int number = 0;
  const auto [end, error] =
      std::from_chars(view.data(), view.data() + view.size(), number);
  if (error != std::errc() || end != view.data() + view.size()) {
    return absl::InvalidArgumentError(absl::StrCat("the environment variable ",
                                                   variable, " is '", text,
                                                   "'; it must be an integer"));
  }
  return std::optional<int>(number);
}

std::string StringOrEnvironment(const std::string& value, const char* variable,
                                const char* otherwise) {
  if (!value.empty()) return value;
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : text;
}

}  // namespace hawser::launch
