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
#include "async/status_macros.h"
#include "optim/make_update_rule.h"
#include "optim/update_rule.h"
#include "tensor/dtype.h"

namespace hawser::ps {
namespace {

constexpr size_t kMaxNameLength = 200;
constexpr int64_t kMaxWidth = 65536;
constexpr int64_t kMaxShards = 65536;
// Of the tensors of a dense table.
constexpr int64_t kMaxElements = int64_t{1} << 40;

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
  RETURN_IF_ERROR(CheckTensors(spec));
  const absl::StatusOr<std::unique_ptr<optim::UpdateRule>> rule =
      optim::MakeUpdateRule(spec.rule);
  if (!rule.ok()) return Invalid(spec, std::string(rule.status().message()));
  RETURN_IF_ERROR(CheckRule(spec, **rule));
  spec.rule = (*rule)->spec();
  return spec;
}

}  // namespace hawser::ps
