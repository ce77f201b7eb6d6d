#ifndef HAWSER_OPTIM_INTERNAL_OPTION_TABLE_H_
#define HAWSER_OPTIM_INTERNAL_OPTION_TABLE_H_

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "optim/rule_spec.h"

namespace hawser::optim::internal {

// A field of an options struct and its name in a RuleSpec.
template <class Options>
struct OptionField {
  std::string_view name;
  std::variant<double Options::*, bool Options::*, int64_t Options::*> member;
};

// kInvalidArgument, naming the rule, the unknown option and the known ones.
absl::Status UnknownOption(std::string_view rule, std::string_view option,
                           std::span<const std::string_view> known);
absl::Status NotASwitch(std::string_view rule, std::string_view option,
                        double value);
// Writes `value` to `number`. kInvalidArgument: it is not a whole number of at
// most 2^53 either way.
absl::Status ReadInteger(std::string_view rule, std::string_view option,
                         double value, int64_t& number);
absl::Status RepeatedOption(std::string_view rule, std::string_view option);

// The permitted range of an option: low <= value (or low < value without
// `low_included`), and value < high (or value <= high with `high_included`).
// Infinities are rejected, and NaN, which represents an unset required option.
struct Range {
  double low = 0;
  double high = std::numeric_limits<double>::infinity();
  bool low_included = true;
  bool high_included = false;
};
// kInvalidArgument, naming rule and option, unless `value` is in `range`.
absl::Status CheckOption(std::string_view rule, std::string_view option,
                         double value, const Range& range);

// The options of `spec`; the others have the defaults of `Options`.
//
// kInvalidArgument: an option is not in the table or is given twice, a switch
// is neither 0 nor 1, or an integer is none.
template <class Options>
absl::StatusOr<Options> ReadOptions(
    const RuleSpec& spec, std::span<const OptionField<Options>> table) {
  Options result;
  for (size_t i = 0; i < spec.options.size(); ++i) {
    const auto& [name, value] = spec.options[i];
    for (size_t j = 0; j < i; ++j) {
      if (spec.options[j].first == name) return RepeatedOption(spec.name, name);
    }
    const OptionField<Options>* found = nullptr;
    for (const OptionField<Options>& field : table) {
      if (field.name == name) found = &field;
    }
    if (found == nullptr) {
      std::vector<std::string_view> known;
      for (const OptionField<Options>& field : table) {
        known.push_back(field.name);
      }
      return UnknownOption(spec.name, name, known);
    }
    if (auto* number = std::get_if<double Options::*>(&found->member)) {
      result.*(*number) = value;
      continue;
    }
    if (auto* number = std::get_if<int64_t Options::*>(&found->member)) {
      const absl::Status status =
          ReadInteger(spec.name, name, value, result.*(*number));
      if (!status.ok()) return status;
      continue;
    }
    if (value != 0 && value != 1) return NotASwitch(spec.name, name, value);
    result.*(std::get<bool Options::*>(found->member)) = value == 1;
  }
  return result;
}

// All options of `options`, in the order of the table, except unset required
// ones (NaN).
template <class Options>
RuleSpec WriteOptions(std::string_view rule, const Options& options,
                      std::span<const OptionField<Options>> table) {
  RuleSpec spec{std::string(rule), {}};
  for (const OptionField<Options>& field : table) {
    double value;
    if (auto* number = std::get_if<double Options::*>(&field.member)) {
      value = options.*(*number);
      if (std::isnan(value)) continue;
    } else if (auto* integer = std::get_if<int64_t Options::*>(&field.member)) {
      value = static_cast<double>(options.*(*integer));
    } else {
      value = options.*(std::get<bool Options::*>(field.member)) ? 1 : 0;
    }
    spec.options.emplace_back(std::string(field.name), value);
  }
  return spec;
}

}  // namespace hawser::optim::internal

#endif  // HAWSER_OPTIM_INTERNAL_OPTION_TABLE_H_
