#include "data/tabular/parse_number.h"

#include <charconv>
#include <cmath>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "data/tabular/line_reader.h"

namespace hawser::data {
namespace {

absl::Status Bad(std::string_view text, const char* why) {
  return absl::InvalidArgumentError(absl::StrCat(Quoted(text), why));
}

template <class T>
absl::StatusOr<T> Parse(std::string_view text, std::string_view digits,
                        const char* kind, const char* range) {
  T value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [parsed, error] = std::from_chars(digits.data(), end, value);
  if (error == std::errc::result_out_of_range && parsed == end) {
    return Bad(text, range);
  }
  if (error != std::errc() || parsed != end) return Bad(text, kind);
  return value;
}

}  // namespace

absl::StatusOr<uint64_t> ParseKey(std::string_view text) {
  return Parse<uint64_t>(text, text, " is not a number without sign",
                         " does not fit 64 bits");
}

absl::StatusOr<int64_t> ParseInteger(std::string_view text) {
  return Parse<int64_t>(text, text, " is not a whole number",
                        " does not fit 64 bits");
}

absl::StatusOr<float> ParseFloat(std::string_view text) {
  std::string_view digits = text;
  // from_chars does not take the sign '+', which libsvm files have.
  if (digits.starts_with('+') && !digits.starts_with("+-")) {
    digits.remove_prefix(1);
  }
  absl::StatusOr<float> value = Parse<float>(text, digits, " is not a number",
                                             " is out of the range of floats");
  if (value.ok() && !std::isfinite(*value)) return Bad(text, " is not finite");
  return value;
}

}  // namespace hawser::data
