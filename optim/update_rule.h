#ifndef HAWSER_OPTIM_UPDATE_RULE_H_
#define HAWSER_OPTIM_UPDATE_RULE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "optim/rule_spec.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace hawser::optim {

// A number that a rule stores for each element of a parameter, such as Adam's
// "exp_avg", or for each row. Names are those of PyTorch's state dicts.
struct Slot {
  std::string name;
  double initial = 0;
  bool per_row = false;
};

inline constexpr size_t kMaxSlots = 3;

// The state of a rule for one parameter. Initially empty; the first Apply
// creates the slots.
struct ParameterState {
  // Number of updates so far.
  int64_t step = 0;
  // One tensor per slot: f64 for f64 parameters, otherwise f32. Its shape is
  // the parameter's, or [rows] for a slot with one number per row.
  std::vector<std::pair<std::string, Tensor>> slots;
};

// Consecutive elements in host memory, updated in place: a whole parameter or
// one row. If a slot has one number per row, a span is one row.
struct UpdateSpan {
  // Dtype of parameter and gradient: f32, f64, f16 or bf16.
  tensor::DType dtype = tensor::DType::kF32;
  size_t count = 0;
  void* parameter = nullptr;
  const void* gradient = nullptr;
  // In the order of UpdateRule::slots(); f64 if `dtype` is f64, else f32.
  std::array<void*, kMaxSlots> slots = {};
  // 1 for the first update of these elements.
  int64_t step = 1;
  double learning_rate = 0;
};

// Options that vary from step to step. The rule contains all others.
struct StepOptions {
  double learning_rate = 0;
};

// Kinds of gradients that a rule supports.
enum class GradientKind {
  kDense,  // Gradients of the whole parameter.
  kRows,   // Only gradients of some rows of an embedding table.
  kDenseAndRows,
};

// An algorithm that updates a parameter from its gradient, such as SGD or Adam.
// Local training, the distributed optimizer and the parameter server use it.
//
// 16-bit parameters are updated with f32 arithmetic and have f32 state.
// The rules of this folder take denormal numbers for zero
// (tensor/flush_denormals.h).
//
// Immutable, hence thread-safe. Two updates of one parameter or one state must
// not overlap. MakeUpdateRule creates a rule from its description.
//
// A program can derive rules of its own (RegisterUpdateRule). Then `spec` of
// the constructor has all options, with the base of the learning rate as "lr";
// Update takes the rate from UpdateSpan::learning_rate instead, and depends on
// nothing but its arguments and the options, so that it can be repeated.
class UpdateRule {
 public:
  virtual ~UpdateRule() = default;

  UpdateRule(const UpdateRule&) = delete;
  UpdateRule& operator=(const UpdateRule&) = delete;

  // The description with all options, including defaults.
  const RuleSpec& spec() const { return spec_; }
  std::string_view name() const { return spec_.name; }
  double learning_rate() const;
  std::span<const Slot> slots() const { return slots_; }
  GradientKind gradient_kind() const { return gradient_kind_; }

  // Updates `parameter` from `gradient`, which has the same shape and dtype,
  // and counts one step in `state`. After an error all of them are unchanged.
  //
  // kInvalidArgument     a tensor is undefined, not floating point, not on the
  //                      CPU, or not contiguous (the gradient may be strided);
  //                      shapes or dtypes differ; `state` belongs to another
  //                      parameter; or the rule supports only rows.
  absl::Status Apply(Tensor& parameter, const Tensor& gradient,
                     ParameterState& state, const StepOptions& options) const;

  // Updates only the rows `ids` of `parameter`. The state of other rows does
  // not decay. If an id is repeated, its gradients are summed first. Counts one
  // step in `state`, as Apply does, even if `ids` is empty.
  //
  //   parameter  [rows, ...]
  //   ids        [n] i64, in any order.
  //   gradients  [n, ...]. Row i is the gradient of row ids[i] of `parameter`.
  //
  // kOutOfRange          an id is not in [0, rows).
  // kInvalidArgument     as in Apply, or the rule cannot update rows (with
  // these
  //                      options).
  absl::Status ApplyRows(Tensor& parameter, const Tensor& ids,
                         const Tensor& gradients, ParameterState& state,
                         const StepOptions& options) const;

  // Checks that `state`, from a file or another worker, can belong to
  // `parameter`. Its step must not be negative. Its slots must be those of this
  // rule, in the rule's order, with the parameter's shape; before the first
  // step there may be none. Otherwise kInvalidArgument.
  absl::Status CheckState(const Tensor& parameter,
                          const ParameterState& state) const;

  // Runs only the arithmetic, for a caller that stores parameters and state
  // itself: updates one span after the other. All pointers must be aligned to
  // their element type. Before the first update, slots must contain `initial`.
  // Elements do not depend on each other, if is_elementwise(); LAMB computes
  // norms over a span.
  virtual void Update(std::span<const UpdateSpan> spans) const = 0;

  // Whether a slot has one number per row.
  bool has_row_slots() const;

  // Whether elements do not depend on each other, so that any cut of a
  // parameter into spans gives the same result.
  virtual bool is_elementwise() const { return !has_row_slots(); }

  // Whether Update depends on UpdateSpan::step. If not, a caller that stores
  // rows itself need not count their updates.
  virtual bool depends_on_step() const { return true; }

 protected:
  UpdateRule(RuleSpec spec, std::vector<Slot> slots, GradientKind kind)
      : spec_(std::move(spec)),
        slots_(std::move(slots)),
        gradient_kind_(kind) {}

 private:
  // Creates the slots that `state` lacks. After an error `state` is unchanged.
  absl::Status PrepareState(const Tensor& parameter,
                            ParameterState& state) const;

  const RuleSpec spec_;
  const std::vector<Slot> slots_;
  const GradientKind gradient_kind_;
};

}  // namespace hawser::optim

#endif  // HAWSER_OPTIM_UPDATE_RULE_H_
