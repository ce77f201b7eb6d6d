#include "ps/storage/table_spec.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
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
  const absl::StatusOr<std::unique_ptr<optim::UpdateRule>> rule =
      optim::MakeUpdateRule(spec.rule);
  if (!rule.ok()) return Invalid(spec, std::string(rule.status().message()));
  if ((*rule)->gradient_kind() == optim::GradientKind::kDense) {
    return Invalid(spec, absl::StrCat(spec.rule.ToString(),
                                      " cannot update rows; use SGD without "
                                      "weight decay, Adagrad, "
                                      "RowWiseAdagrad, SparseAdam or FTRL"));
  }
  spec.rule = (*rule)->spec();
  return spec;
}

}  // namespace hawser::ps
