#include "ps/storage/table_spec.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/status_macros.h"
#include "optim/make_update_rule.h"
#include "optim/rule_spec.h"
#include "optim/schedule_spec.h"
#include "optim/update_rule.h"
#include "ps/storage/consistency.h"
#include "tensor/dtype.h"

namespace hawser::ps {
namespace {

constexpr size_t kMaxNameLength = 200;
constexpr int64_t kMaxWidth = 65536;
constexpr int64_t kMaxShards = 65536;
// Of the tensors of a dense table.
constexpr int64_t kMaxElements = int64_t{1} << 40;
// Counters of FrequencySketch have four bits.
constexpr int64_t kMaxAdmissionPushes = 15;
constexpr int64_t kMinAdmissionWindow = 16;
constexpr int64_t kMaxAdmissionWindow = int64_t{1} << 28;
constexpr int64_t kMaxRows = int64_t{1} << 48;
constexpr absl::Duration kMaxTtl = absl::Hours(24 * 3650);
constexpr int64_t kMaxStaleness = 1'000'000;
constexpr size_t kMaxKeyRanges = 512;

bool IsNameCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' ||
         c == '-' || c == '.' || c == '/';
}

absl::Status Invalid(const TableSpec& spec, const std::string& problem) {
  return absl::InvalidArgumentError(
      absl::StrCat("table \"", spec.name, "\": ", problem));
}

absl::Status CheckInitializer(const TableSpec& spec, const Initializer& initial,
                              const std::string& of) {
  if (!std::isfinite(initial.a) || !std::isfinite(initial.b)) {
    return Invalid(spec, absl::StrCat(of, "an initial value is not finite"));
  }
  if (initial.kind == Initializer::Kind::kUniform && initial.a > initial.b) {
    return Invalid(spec, absl::StrCat(of, "initial values from ", initial.a,
                                      " to ", initial.b));
  }
  if (initial.kind == Initializer::Kind::kNormal && initial.b < 0) {
    return Invalid(spec, absl::StrCat(of,
                                      "initial values have the negative "
                                      "standard deviation ",
                                      initial.b));
  }
  return absl::OkStatus();
}

absl::Status CheckTensors(const TableSpec& spec) {
  std::set<std::string> names;
  int64_t total = 0;
  for (const DenseTensor& tensor : spec.tensors) {
    if (tensor.name.empty() || !names.insert(tensor.name).second) {
      return Invalid(spec, absl::StrCat("its tensors need different names, not "
                                        "\"",
                                        tensor.name, "\" again"));
    }
    ASSIGN_OR_RETURN(const int64_t count, tensor.shape.CheckedNumElements());
    if (count > kMaxElements - total) {
      return Invalid(spec, absl::StrCat("its tensors have more than ",
                                        kMaxElements, " elements"));
    }
    total += count;
  }
  return absl::OkStatus();
}

// Whether the rule of `rule_spec` can update the rows of such a table.
absl::Status CheckRule(const TableSpec& spec, const optim::RuleSpec& rule_spec,
                       const optim::UpdateRule& rule, const std::string& of) {
  const bool dense = !spec.tensors.empty();
  const optim::GradientKind unfit =
      dense ? optim::GradientKind::kRows : optim::GradientKind::kDense;
  if (rule.gradient_kind() == unfit || (dense && !rule.is_elementwise())) {
    return Invalid(
        spec, absl::StrCat(of, rule_spec.ToString(),
                           dense ? " cannot update tensors in chunks; use SGD, "
                                   "Adam, AdamW, Adagrad, RMSprop, Adamax, "
                                   "Adadelta, Rprop or FTRL"
                                 : " cannot update rows; use SGD without "
                                   "weight decay, Adagrad, RowWiseAdagrad, "
                                   "SparseAdam or FTRL"));
  }
  return absl::OkStatus();
}

// Returns the rule of `spec`, which is then normalized; null: this process does
// not have it.
absl::StatusOr<std::unique_ptr<optim::UpdateRule>> NormalizeRule(
    const TableSpec& table, optim::RuleSpec& spec, const std::string& of) {
  std::unique_ptr<optim::UpdateRule> rule;
  if (optim::HasUpdateRule(spec.name)) {
    absl::StatusOr<std::unique_ptr<optim::UpdateRule>> made =
        optim::MakeUpdateRule(spec);
    if (!made.ok()) {
      return Invalid(table,
                     absl::StrCat(of, std::string(made.status().message())));
    }
    RETURN_IF_ERROR(CheckRule(table, spec, **made, of));
    rule = *std::move(made);
    spec = rule->spec();
  } else {
    std::sort(spec.options.begin(), spec.options.end());
  }
  // A description is equal to itself.
  for (const auto& [name, value] : spec.options) {
    if (!std::isnan(value)) continue;
    return Invalid(table, absl::StrCat(of, "option ", name, " of ", spec.name,
                                       " is not a number"));
  }
  return rule;
}

absl::Status NormalizeSchedule(const TableSpec& table,
                               optim::ScheduleSpec& schedule,
                               const std::string& of) {
  const absl::StatusOr<optim::ScheduleSpec> normal =
      optim::NormalizeScheduleSpec(schedule);
  if (!normal.ok()) {
    return Invalid(table,
                   absl::StrCat(of, std::string(normal.status().message())));
  }
  schedule = *normal;
  return absl::OkStatus();
}

std::string NameOf(const KeyRange& range) {
  return absl::StrCat("key range [", range.first, ", ", range.last, "]");
}

// The options of the table's rule `base`, and instead of them those of `rule`.
absl::StatusOr<optim::RuleSpec> Merge(const TableSpec& table,
                                      const optim::RuleSpec& base,
                                      const optim::RuleSpec& rule,
                                      const std::string& of) {
  if (rule.name != base.name) {
    return Invalid(table, absl::StrCat(of, "it must be ", base.name,
                                       ", the rule of the table, with other "
                                       "options, not \"",
                                       rule.name, "\""));
  }
  optim::RuleSpec merged = base;
  std::set<std::string> names;
  for (const auto& [name, value] : rule.options) {
    if (!names.insert(name).second) {
      return Invalid(table, absl::StrCat(of, name, " is given twice"));
    }
    merged.Set(name, value);
  }
  return merged;
}

bool SameState(const optim::UpdateRule& a, const optim::UpdateRule& b) {
  return std::equal(a.slots().begin(), a.slots().end(), b.slots().begin(),
                    b.slots().end(),
                    [](const optim::Slot& x, const optim::Slot& y) {
                      return x.name == y.name && x.per_row == y.per_row;
                    });
}

// `rule` is that of the table, or null.
absl::Status NormalizeKeyRange(const TableSpec& table,
                               const optim::UpdateRule* rule, KeyRange& range) {
  if (range.first > range.last) {
    return Invalid(table, absl::StrCat(NameOf(range),
                                       ": its first key is above its last"));
  }
  if (range.initializer.has_value()) {
    RETURN_IF_ERROR(
        CheckInitializer(table, *range.initializer,
                         absl::StrCat(NameOf(range), ": initializer: ")));
  }
  if (range.schedule.has_value()) {
    RETURN_IF_ERROR(NormalizeSchedule(
        table, *range.schedule, absl::StrCat(NameOf(range), ": schedule: ")));
  }
  if (!range.rule.has_value()) return absl::OkStatus();
  const std::string of = absl::StrCat(NameOf(range), ": rule: ");
  ASSIGN_OR_RETURN(range.rule, Merge(table, table.rule, *range.rule, of));
  ASSIGN_OR_RETURN(const std::unique_ptr<optim::UpdateRule> of_range,
                   NormalizeRule(table, *range.rule, of));
  if (rule == nullptr || SameState(*rule, *of_range)) return absl::OkStatus();
  return Invalid(table,
                 absl::StrCat(of, range.rule->ToString(),
                              " does not keep the same numbers for a row as ",
                              table.rule.ToString()));
}

absl::Status NormalizeKeyRanges(TableSpec& spec,
                                const optim::UpdateRule* rule) {
  std::vector<KeyRange>& ranges = spec.key_ranges;
  if (ranges.empty()) return absl::OkStatus();
  if (ranges.size() > kMaxKeyRanges) {
    return Invalid(spec, absl::StrCat("it has at most ", kMaxKeyRanges,
                                      " key ranges, not ", ranges.size()));
  }
  if (!spec.tensors.empty()) {
    return Invalid(spec,
                   "a dense table has no key ranges: use a table for each "
                   "group of tensors");
  }
  for (KeyRange& range : ranges) {
    RETURN_IF_ERROR(NormalizeKeyRange(spec, rule, range));
  }
  std::sort(
      ranges.begin(), ranges.end(),
      [](const KeyRange& a, const KeyRange& b) { return a.first < b.first; });
  for (size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i - 1].last < ranges[i].first) continue;
    return Invalid(spec, absl::StrCat(NameOf(ranges[i - 1]), " and ",
                                      NameOf(ranges[i]), " overlap"));
  }
  return absl::OkStatus();
}

absl::Status NormalizeRetention(TableSpec& spec) {
  Retention& retention = spec.retention;
  if (retention.active() && !spec.tensors.empty()) {
    return Invalid(spec, "the rows of a dense table cannot be removed");
  }
  if (retention.admission_pushes < 1 ||
      retention.admission_pushes > kMaxAdmissionPushes) {
    return Invalid(
        spec, absl::StrCat("a key is admitted after 1 to ", kMaxAdmissionPushes,
                           " pushes, not ", retention.admission_pushes));
  }
  if (retention.admission_window < kMinAdmissionWindow ||
      retention.admission_window > kMaxAdmissionWindow) {
    return Invalid(
        spec, absl::StrCat("its window of admission must be ",
                           kMinAdmissionWindow, " to ", kMaxAdmissionWindow,
                           " keys, not ", retention.admission_window));
  }
  if (retention.admission_pushes == 1) {
    retention.admission_window = Retention().admission_window;
  }
  if (retention.ttl != absl::InfiniteDuration()) {
    retention.ttl = absl::Ceil(retention.ttl, absl::Seconds(1));
    if (retention.ttl < absl::Seconds(1) || retention.ttl > kMaxTtl) {
      return Invalid(
          spec, absl::StrCat("the TTL of its rows must be 1 second to 10 years,"
                             " or infinite, not ",
                             absl::FormatDuration(retention.ttl)));
    }
  }
  if (retention.max_rows < 0 || retention.max_rows > kMaxRows) {
    return Invalid(spec,
                   absl::StrCat("its number of rows cannot be limited to ",
                                retention.max_rows));
  }
  return absl::OkStatus();
}

absl::Status CheckStorage(const TableSpec& spec) {
  const int64_t rows = spec.storage.rows_in_memory;
  if (spec.storage.kind == TableStorage::Kind::kMemory) {
    if (rows == 0) return absl::OkStatus();
    return Invalid(spec, "rows_in_memory is for tables with rows in RocksDB");
  }
  if (rows < 1 || rows > kMaxRows) {
    return Invalid(spec, absl::StrCat("its rows in memory must be 1 to 2^48, "
                                      "not ",
                                      rows));
  }
  if (!spec.tensors.empty()) {
    return Invalid(spec, "rows in RocksDB are not those of a dense table");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TableSpec> NormalizeTableSpec(TableSpec spec) {
  if (spec.name.empty() || spec.name.size() > kMaxNameLength ||
      !std::all_of(spec.name.begin(), spec.name.end(), IsNameCharacter)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a table needs a name of 1 to ", kMaxNameLength,
                     " letters, digits, '_', '-', '.' or '/'"));
  }
  if (spec.width < 1 || spec.width > kMaxWidth) {
    return Invalid(spec, absl::StrCat("its width must be 1 to ", kMaxWidth,
                                      ", not ", spec.width));
  }
  if (spec.dtype != tensor::DType::kF32 && spec.dtype != tensor::DType::kF16 &&
      spec.dtype != tensor::DType::kBF16) {
    return Invalid(spec, absl::StrCat("rows are stored as f32, f16 or bf16, "
                                      "not ",
                                      std::string(DTypeName(spec.dtype))));
  }
  if (spec.num_shards < 1 || spec.num_shards > kMaxShards) {
    return Invalid(spec, absl::StrCat("its number of shards must be 1 to ",
                                      kMaxShards, ", not ", spec.num_shards));
  }
  RETURN_IF_ERROR(CheckInitializer(spec, spec.initializer, ""));
  if (spec.consistency.bound < 0 || spec.consistency.bound > kMaxStaleness) {
    return Invalid(spec,
                   absl::StrCat("its staleness must be 0 to ", kMaxStaleness,
                                " clocks, not ", spec.consistency.bound));
  }
  if (spec.consistency.mode != Consistency::Mode::kBoundedStaleness) {
    spec.consistency.bound = 0;
  }
  RETURN_IF_ERROR(CheckTensors(spec));
  RETURN_IF_ERROR(NormalizeRetention(spec));
  RETURN_IF_ERROR(CheckStorage(spec));
  RETURN_IF_ERROR(NormalizeSchedule(spec, spec.schedule, "schedule: "));
  ASSIGN_OR_RETURN(const std::unique_ptr<optim::UpdateRule> rule,
                   NormalizeRule(spec, spec.rule, ""));
  RETURN_IF_ERROR(NormalizeKeyRanges(spec, rule.get()));
  return spec;
}

}  // namespace hawser::ps
