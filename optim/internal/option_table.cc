#include "optim/internal/option_table.h"

#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

namespace hawser::optim::internal {
namespace {

absl::string_view View(std::string_view text) {
  return absl::string_view(text.data(), text.size());
}

}  // namespace

absl::Status UnknownOption(std::string_view rule, std::string_view option,
                           std::span<const std::string_view> known) {
  std::vector<std::string> names(known.begin(), known.end());
  return absl::InvalidArgumentError(
      absl::StrCat(View(rule), " does not have an option \"", View(option),
                   "\"; its options are ", absl::StrJoin(names, ", ")));
}

absl::Status NotASwitch(std::string_view rule, std::string_view option,
                        double value) {
  return absl::InvalidArgumentError(absl::StrCat(
      View(rule), ": ", View(option), " must be 0 or 1, not ", value));
}

absl::Status ReadInteger(std::string_view rule, std::string_view option,
                         double value, int64_t& number) {
  if (value >= -0x1p53 && value <= 0x1p53 && value == std::floor(value)) {
    number = static_cast<int64_t>(value);
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(View(rule), ": ", View(option),
                   " must be a whole number of at most 2^53", ", not ", value));
}

absl::Status RepeatedOption(std::string_view rule, std::string_view option) {
  return absl::InvalidArgumentError(
      absl::StrCat(View(rule), ": ", View(option), " is given twice"));
}

absl::Status CheckOption(std::string_view rule, std::string_view option,
                         double value, const Range& range) {
  const bool above =
      range.low_included ? value >= range.low : value > range.low;
  const bool below =
      range.high_included ? value <= range.high : value < range.high;
  if (above && below && std::isfinite(value)) return absl::OkStatus();
  if (std::isnan(value)) {
    return absl::InvalidArgumentError(
        absl::StrCat(View(rule), ": ", View(option),
                     " must be set to a number; it does not have a default"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat(View(rule), ": ", View(option), " must be in ",
                   range.low_included ? "[" : "(", range.low, ", ", range.high,
                   range.high_included ? "]" : ")", ", not ", value));
}

}  // namespace hawser::optim::internal
