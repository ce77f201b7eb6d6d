#include "ps/storage/table_spec.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/status_macros.h"
#include "optim/make_update_rule.h"
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

bool IsNameCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' ||
         c == '-' || c == '.' || c == '/';
}

absl::Status Invalid(const TableSpec& spec, const std::string& problem) {
  return absl::InvalidArgumentError(
      absl::StrCat("table \"", spec.name, "\": ", problem));
}

absl::Status CheckInitializer(const TableSpec& spec) {
  const Initializer& initial = spec.initializer;
  if (!std::isfinite(initial.a) || !std::isfinite(initial.b)) {
    return Invalid(spec, "an initial value is not finite");
  }
  if (initial.kind == Initializer::Kind::kUniform && initial.a > initial.b) {
    return Invalid(spec, absl::StrCat("initial values from ", initial.a, " to ",
                                      initial.b));
  }
  if (initial.kind == Initializer::Kind::kNormal && initial.b < 0) {
    return Invalid(spec, absl::StrCat("initial values have the negative "
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

// Whether the rule can update the rows of such a table.
absl::Status CheckRule(const TableSpec& spec, const optim::UpdateRule& rule) {
  const bool dense = !spec.tensors.empty();
  const optim::GradientKind unfit =
      dense ? optim::GradientKind::kRows : optim::GradientKind::kDense;
  if (rule.gradient_kind() == unfit || (dense && !rule.is_elementwise())) {
    return Invalid(
        spec, absl::StrCat(spec.rule.ToString(),
                           dense ? " cannot update tensors in chunks; use SGD, "
                                   "Adam, AdamW, Adagrad, RMSprop, Adamax, "
                                   "Adadelta, Rprop or FTRL"
                                 : " cannot update rows; use SGD without "
                                   "weight decay, Adagrad, RowWiseAdagrad, "
                                   "SparseAdam or FTRL"));
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
  if (spec.retention.active() || !spec.tensors.empty()) {
    return Invalid(spec,
                   "rows in RocksDB have no retention, and are not those of a "
                   "dense table");
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
  RETURN_IF_ERROR(CheckInitializer(spec));
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
  const absl::StatusOr<std::unique_ptr<optim::UpdateRule>> rule =
      optim::MakeUpdateRule(spec.rule);
  if (!rule.ok()) return Invalid(spec, std::string(rule.status().message()));
  RETURN_IF_ERROR(CheckRule(spec, **rule));
  spec.rule = (*rule)->spec();
  return spec;
}

}  // namespace hawser::ps
