#include "optim/rule_spec.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace hawser::optim {
namespace {

absl::Status Malformed(absl::string_view text, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("update rule \"", text, "\": ", why,
                   "; write it like SGD(lr=0.1,momentum=0.9)"));
}

// The number with enough digits for an exact round trip; 0.1 gives "0.1".
std::string ShortestNumber(double value) {
  std::string text = absl::StrFormat("%.15g", value);
  double back;
  if (!absl::SimpleAtod(text, &back) || back != value) {
    text = absl::StrFormat("%.17g", value);
  }
  return text;
}

}  // namespace

std::optional<double> RuleSpec::Find(std::string_view option) const {
  for (const auto& [key, value] : options) {
    if (key == option) return value;
  }
  return std::nullopt;
}

void RuleSpec::Set(std::string_view option, double value) {
  for (auto& [key, current] : options) {
    if (key == option) {
      current = value;
      return;
    }
  }
  options.emplace_back(std::string(option), value);
}

std::string RuleSpec::ToString() const {
  std::string text = absl::StrCat(name, "(");
  const char* separator = "";
  for (const auto& [option, value] : options) {
    absl::StrAppend(&text, separator, option, "=", ShortestNumber(value));
    separator = ",";
  }
  absl::StrAppend(&text, ")");
  return text;
}

absl::StatusOr<RuleSpec> ParseRuleSpec(std::string_view text) {
  absl::string_view whole(text.data(), text.size());
  absl::string_view rest = absl::StripAsciiWhitespace(whole);
  RuleSpec spec;
  const size_t open = rest.find('(');
  spec.name = std::string(absl::StripAsciiWhitespace(rest.substr(0, open)));
  if (spec.name.empty()) return Malformed(whole, "the name is missing");
  if (open == absl::string_view::npos) return spec;
  if (rest.back() != ')') return Malformed(whole, "the last ) is missing");
  rest = rest.substr(open + 1, rest.size() - open - 2);
  if (absl::StripAsciiWhitespace(rest).empty()) return spec;
  for (absl::string_view part : absl::StrSplit(rest, ',')) {
    const std::vector<absl::string_view> sides = absl::StrSplit(part, '=');
    double value;
    if (sides.size() != 2 || !absl::SimpleAtod(sides[1], &value)) {
      return Malformed(
          whole, absl::StrCat("\"", part, "\" is not of the form name=number"));
    }
    const absl::string_view key = absl::StripAsciiWhitespace(sides[0]);
    const std::string_view name(key.data(), key.size());
    if (spec.Find(name).has_value()) {
      return Malformed(whole, absl::StrCat(key, " appears twice"));
    }
    spec.Set(name, value);
  }
  return spec;
}

}  // namespace hawser::optim
