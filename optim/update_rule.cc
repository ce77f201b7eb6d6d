#include "optim/update_rule.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "async/status_macros.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::optim {
namespace {

// More steps than any training has. The step after it must not overflow.
constexpr int64_t kMaxStep = int64_t{1} << 53;

using tensor::DType;
using tensor::Shape;

DType SlotDType(DType parameter) {
  return parameter == DType::kF64 ? DType::kF64 : DType::kF32;
}

std::string Describe(const Tensor& tensor) {
  return tensor.defined() ? tensor.ToString() : "undefined";
}

absl::Status CheckParameter(const RuleSpec& rule, const Tensor& parameter) {
  if (!parameter.defined()) {
    return absl::InvalidArgumentError(
        absl::StrCat(rule.name, ": the parameter is undefined"));
  }
  if (!IsFloatingPoint(parameter.dtype())) {
    return absl::InvalidArgumentError(
        absl::StrCat(rule.name, ": a parameter must be floating point, not ",
                     parameter.ToString()));
  }
  if (!parameter.device().is_cpu()) {
    return absl::InvalidArgumentError(
        absl::StrCat(rule.name, ": updates run on the cpu; the parameter is ",
                     parameter.ToString()));
  }
  if (!parameter.is_contiguous()) {
    return absl::InvalidArgumentError(
        absl::StrCat(rule.name, ": the parameter ", parameter.ToString(),
                     " is not contiguous; optimize the tensor that it views"));
  }
  return absl::OkStatus();
}

// Checks the gradient and returns it in contiguous row-major form.
absl::StatusOr<Tensor> CheckGradient(const RuleSpec& rule,
                                     const Tensor& gradient,
                                     const Shape& expected, DType dtype) {
  if (!gradient.defined()) {
    return absl::InvalidArgumentError(
        absl::StrCat(rule.name, ": the gradient is undefined"));
  }
  if (gradient.dtype() != dtype || gradient.shape() != expected ||
      !gradient.device().is_cpu()) {
    return absl::InvalidArgumentError(absl::StrCat(
        rule.name, ": the gradient must be ", std::string(DTypeName(dtype)),
        expected.ToString(), " on cpu, not ", gradient.ToString()));
  }
  return gradient.Contiguous();
}

// The shape of `slot` for `parameter`. The rows of a scalar are itself.
Shape SlotShape(const Slot& slot, const Tensor& parameter) {
  if (!slot.per_row) return parameter.shape();
  return Shape({parameter.rank() == 0 ? 1 : parameter.dim(0)});
}

// The shape of the slot `name` of `rule`; if the rule does not have it, that of
// the parameter.
Shape SlotShape(std::span<const Slot> slots, const std::string& name,
                const Tensor& parameter) {
  for (const Slot& slot : slots) {
    if (slot.name == name) return SlotShape(slot, parameter);
  }
  return parameter.shape();
}

absl::Status CheckSlot(const UpdateRule& rule, const Tensor& parameter,
                       const std::string& name, const Tensor& slot) {
  const DType dtype = SlotDType(parameter.dtype());
  const Shape shape = SlotShape(rule.slots(), name, parameter);
  if (slot.defined() && slot.shape() == shape && slot.dtype() == dtype &&
      slot.device().is_cpu() && slot.is_contiguous()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      rule.spec().name, ": ", name, " of the parameter ", parameter.ToString(),
      " must be ", std::string(DTypeName(dtype)), shape.ToString(),
      ", contiguous, on cpu; it is ", Describe(slot)));
}

UpdateSpan WholeParameter(const UpdateRule& rule, Tensor& parameter,
                          ParameterState& state, const StepOptions& options) {
  UpdateSpan span;
  span.dtype = parameter.dtype();
  span.count = static_cast<size_t>(parameter.num_elements());
  span.parameter = parameter.raw_data();
  for (size_t i = 0; i < rule.slots().size(); ++i) {
    span.slots[i] = state.slots[i].second.raw_data();
  }
  span.step = state.step + 1;
  span.learning_rate = options.learning_rate;
  return span;
}

// The rows of a parameter.
class RowSpans {
 public:
  RowSpans(const UpdateRule& rule, const Tensor& parameter,
           const UpdateSpan& whole)
      : rule_(rule),
        whole_(whole),
        count_(parameter.rank() == 0 ? 1 : parameter.dim(0)),
        width_(whole.count / std::max<int64_t>(count_, 1)) {}

  int64_t count() const { return count_; }
  size_t width() const { return width_; }

  UpdateSpan Row(int64_t row) const {
    const size_t item = ItemBytes(whole_.dtype);
    const size_t slot_item = ItemBytes(SlotDType(whole_.dtype));
    UpdateSpan span = whole_;
    span.count = width_;
    span.parameter =
        static_cast<std::byte*>(span.parameter) + row * width_ * item;
    if (span.gradient != nullptr) {
      span.gradient =
          static_cast<const std::byte*>(span.gradient) + row * width_ * item;
    }
    for (size_t i = 0; i < rule_.slots().size(); ++i) {
      const size_t numbers = rule_.slots()[i].per_row ? 1 : width_;
      span.slots[i] =
          static_cast<std::byte*>(span.slots[i]) + row * numbers * slot_item;
    }
    return span;
  }

 private:
  const UpdateRule& rule_;
  const UpdateSpan whole_;
  const int64_t count_;
  const size_t width_;
};

void BumpVersions(const Tensor& parameter, const ParameterState& state) {
  parameter.BumpVersion();
  for (const auto& slot : state.slots) slot.second.BumpVersion();
}

// Sums the gradients of rows with the same id. 16-bit types are added in f32
// and rounded once.
class RowSum {
 public:
  RowSum(const Tensor& gradients, size_t width)
      : gradients_(static_cast<const std::byte*>(gradients.raw_data())),
        dtype_(gradients.dtype()),
        width_(width),
        row_bytes_(width * ItemBytes(dtype_)) {}

  // The sum of the rows at `positions`, valid until the next call.
  const void* Add(std::span<const int64_t> positions) {
    if (positions.size() == 1) return Row(positions[0]);
    sum_.resize(row_bytes_);
    switch (dtype_) {
      case DType::kF64:
        AddAs<double, double>(positions);
        break;
      case DType::kF16:
        AddAs<tensor::Half, float>(positions);
        break;
      case DType::kBF16:
        AddAs<tensor::BFloat16, float>(positions);
        break;
      default:
        AddAs<float, float>(positions);
    }
    return sum_.data();
  }

 private:
  const std::byte* Row(int64_t position) const {
    return gradients_ + static_cast<size_t>(position) * row_bytes_;
  }

  template <class T, class Wide>
  void AddAs(std::span<const int64_t> positions) {
    T* sum = reinterpret_cast<T*>(sum_.data());
    std::vector<Wide> wide(width_, 0);
    for (int64_t position : positions) {
      const T* row = reinterpret_cast<const T*>(Row(position));
      for (size_t i = 0; i < width_; ++i) wide[i] += static_cast<Wide>(row[i]);
    }
    for (size_t i = 0; i < width_; ++i) sum[i] = T(wide[i]);
  }

  const std::byte* const gradients_;
  const DType dtype_;
  const size_t width_;
  const size_t row_bytes_;
  std::vector<std::byte> sum_;
};

// Positions 0, 1, ..., sorted by id. The sort is stable.
absl::StatusOr<std::vector<int64_t>> SortedPositions(
    const RuleSpec& rule, std::span<const int64_t> ids, int64_t rows) {
  for (int64_t id : ids) {
    if (id >= 0 && id < rows) continue;
    return absl::OutOfRangeError(
        absl::StrCat(rule.name, ": row ", id,
                     " is out of range; the parameter has ", rows, " rows"));
  }
  std::vector<int64_t> positions(ids.size());
  std::iota(positions.begin(), positions.end(), int64_t{0});
  std::stable_sort(positions.begin(), positions.end(),
                   [&](int64_t a, int64_t b) { return ids[a] < ids[b]; });
  return positions;
}

}  // namespace

double UpdateRule::learning_rate() const {
  return spec_.Find("lr").value_or(0);
}

bool UpdateRule::has_row_slots() const {
  return std::any_of(slots_.begin(), slots_.end(),
                     [](const Slot& slot) { return slot.per_row; });
}

absl::Status UpdateRule::PrepareState(const Tensor& parameter,
                                      ParameterState& state) const {
  const bool complete =
      std::equal(state.slots.begin(), state.slots.end(), slots_.begin(),
                 slots_.end(), [](const auto& kept, const Slot& slot) {
                   return kept.first == slot.name;
                 });
  for (const auto& [slot, kept] : state.slots) {
    RETURN_IF_ERROR(CheckSlot(*this, parameter, slot, kept));
  }
  if (complete) return absl::OkStatus();
  // For the first update, or after a change to options that need other slots.
  std::vector<std::pair<std::string, Tensor>> slots;
  for (const Slot& slot : slots_) {
    const auto found =
        std::find_if(state.slots.begin(), state.slots.end(),
                     [&](const auto& kept) { return kept.first == slot.name; });
    if (found != state.slots.end()) {
      slots.push_back(*found);
      continue;
    }
    slots.emplace_back(slot.name,
                       Tensor::Full(SlotShape(slot, parameter), slot.initial,
                                    {.dtype = SlotDType(parameter.dtype())}));
  }
  state.slots = std::move(slots);
  return absl::OkStatus();
}

absl::Status UpdateRule::CheckState(const Tensor& parameter,
                                    const ParameterState& state) const {
  RETURN_IF_ERROR(CheckParameter(spec_, parameter));
  if (state.step < 0 || state.step > kMaxStep) {
    return absl::InvalidArgumentError(absl::StrCat(
        spec_.name, ": the state has the invalid step ", state.step));
  }
  if (state.step == 0 && state.slots.empty()) return absl::OkStatus();
  const bool complete =
      std::equal(state.slots.begin(), state.slots.end(), slots_.begin(),
                 slots_.end(), [](const auto& kept, const Slot& slot) {
                   return kept.first == slot.name;
                 });
  if (!complete) {
    std::vector<std::string> given;
    for (const auto& kept : state.slots) given.push_back(kept.first);
    std::vector<std::string> needed;
    for (const Slot& slot : slots_) needed.push_back(slot.name);
    return absl::InvalidArgumentError(
        absl::StrCat(spec_.name, ": the state must have the slots [",
                     absl::StrJoin(needed, ", "), "], not [",
                     absl::StrJoin(given, ", "), "]"));
  }
  for (const auto& [slot, kept] : state.slots) {
    RETURN_IF_ERROR(CheckSlot(*this, parameter, slot, kept));
  }
  return absl::OkStatus();
}

absl::Status UpdateRule::Apply(Tensor& parameter, const Tensor& gradient,
                               ParameterState& state,
                               const StepOptions& options) const {
  if (gradient_kind_ == GradientKind::kRows) {
    return absl::InvalidArgumentError(
        absl::StrCat(spec_.name,
                     " requires gradients of rows, not of a whole parameter; "
                     "use Adam for this parameter"));
  }
  RETURN_IF_ERROR(CheckParameter(spec_, parameter));
  ASSIGN_OR_RETURN(
      const Tensor dense,
      CheckGradient(spec_, gradient, parameter.shape(), parameter.dtype()));
  RETURN_IF_ERROR(PrepareState(parameter, state));
  UpdateSpan whole = WholeParameter(*this, parameter, state, options);
  whole.gradient = dense.raw_data();
  if (has_row_slots()) {
    const RowSpans rows(*this, parameter, whole);
    for (int64_t row = 0; row < rows.count(); ++row) {
      const UpdateSpan span = rows.Row(row);
      Update({&span, 1});
    }
  } else {
    Update({&whole, 1});
  }
  ++state.step;
  BumpVersions(parameter, state);
  return absl::OkStatus();
}

absl::Status UpdateRule::ApplyRows(Tensor& parameter, const Tensor& ids,
                                   const Tensor& gradients,
                                   ParameterState& state,
                                   const StepOptions& options) const {
  if (gradient_kind_ == GradientKind::kDense) {
    return absl::InvalidArgumentError(absl::StrCat(
        spec_.ToString(),
        " cannot update rows: it changes all elements in each step"));
  }
  RETURN_IF_ERROR(CheckParameter(spec_, parameter));
  if (parameter.rank() == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        spec_.name, ": the rows of a scalar parameter cannot be updated"));
  }
  if (!ids.defined() || ids.dtype() != DType::kI64 || ids.rank() != 1 ||
      !ids.device().is_cpu()) {
    return absl::InvalidArgumentError(absl::StrCat(
        spec_.name, ": ids must be i64[n] on cpu, not ", Describe(ids)));
  }
  std::vector<int64_t> expected(parameter.shape().begin(),
                                parameter.shape().end());
  expected[0] = ids.dim(0);
  ASSIGN_OR_RETURN(
      const Tensor dense,
      CheckGradient(spec_, gradients, Shape(expected), parameter.dtype()));
  const std::vector<int64_t> rows = ids.ToVector<int64_t>();
  ASSIGN_OR_RETURN(const std::vector<int64_t> positions,
                   SortedPositions(spec_, rows, parameter.dim(0)));
  RETURN_IF_ERROR(PrepareState(parameter, state));

  const RowSpans parameter_rows(
      *this, parameter, WholeParameter(*this, parameter, state, options));
  RowSum sum(dense, parameter_rows.width());
  for (size_t begin = 0, end = 0; begin < positions.size(); begin = end) {
    const int64_t row = rows[positions[begin]];
    while (end < positions.size() && rows[positions[end]] == row) ++end;
    UpdateSpan span = parameter_rows.Row(row);
    span.gradient = sum.Add(std::span(positions).subspan(begin, end - begin));
    Update({&span, 1});
  }
  ++state.step;
  BumpVersions(parameter, state);
  return absl::OkStatus();
}

}  // namespace hawser::optim
