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

// A number that a rule keeps per element of a parameter, such as Adam's
// "exp_avg". Names are those of PyTorch's state dicts.
struct Slot {
  std::string name;
  double initial = 0;
};

inline constexpr size_t kMaxSlots = 3;

// What a rule keeps for one parameter. Starts empty; the first Apply fills it.
struct ParameterState {
  // Updates applied so far.
  int64_t step = 0;
  // One tensor of the parameter's shape per slot, f64 for an f64 parameter and
  // f32 for any other.
  std::vector<std::pair<std::string, Tensor>> slots;
};

// One run of elements in host memory, updated in place.
struct UpdateSpan {
  // Of the parameter and of the gradient: f32, f64, f16 or bf16.
  tensor::DType dtype = tensor::DType::kF32;
  size_t count = 0;
  void* parameter = nullptr;
  const void* gradient = nullptr;
  // In the order of UpdateRule::slots(); f64 if `dtype` is, else f32.
  std::array<void*, kMaxSlots> slots = {};
  // 1 for the first update of these elements.
  int64_t step = 1;
  double learning_rate = 0;
};

// What varies from step to step; everything else belongs to the rule.
struct StepOptions {
  double learning_rate = 0;
};

// Which gradients a rule can use.
enum class GradientKind {
  kDense,  // One for the whole parameter.
  kRows,   // Only those of some rows of an embedding table.
  kDenseAndRows,
};

// How a parameter moves, given its gradient: SGD, Adam and so on. One rule
// serves local training, the distributed optimizer and the parameter server.
//
// 16-bit parameters are updated through f32 arithmetic and keep f32 state.
//
// Immutable, hence thread-safe; two updates of one parameter or one state must
// not overlap in time. MakeUpdateRule makes a rule from its description.
class UpdateRule {
 public:
  virtual ~UpdateRule() = default;

  UpdateRule(const UpdateRule&) = delete;
  UpdateRule& operator=(const UpdateRule&) = delete;

  // The description with every option, defaults included.
  const RuleSpec& spec() const { return spec_; }
  std::string_view name() const { return spec_.name; }
  double learning_rate() const;
  std::span<const Slot> slots() const { return slots_; }
  GradientKind gradient_kind() const { return gradient_kind_; }

  // Updates `parameter` from `gradient` of the same shape and dtype, and
  // counts one step in `state`. An error leaves all of them as they were.
  //
  // kInvalidArgument     undefined, not floating point, not on the cpu, not
  //                      contiguous (the gradient may be strided), shapes or
  //                      dtypes differ, `state` is another parameter's, or the
  //                      rule takes only rows.
  absl::Status Apply(Tensor& parameter, const Tensor& gradient,
                     ParameterState& state, const StepOptions& options) const;

  // Updates only the rows `ids` of `parameter`; the state of other rows does
  // not decay. Rows listed several times have their gradients summed first.
  // Counts one step in `state`, as Apply does, also when `ids` is empty.
  //
  //   parameter  [rows, ...]
  //   ids        [n] i64, in any order.
  //   gradients  [n, ...], row i belonging to parameter row ids[i].
  //
  // kOutOfRange          an id is not in [0, rows).
  // kInvalidArgument     as Apply, or the rule cannot update rows (with these
  //                      options).
  absl::Status ApplyRows(Tensor& parameter, const Tensor& ids,
                         const Tensor& gradients, ParameterState& state,
                         const StepOptions& options) const;

  // Whether `state` can be that of `parameter`, for one that comes from a file
  // or another worker: its step is not negative, and its slots, all of them or
  // before the first step none, are this rule's in this rule's order and fit
  // the parameter. kInvalidArgument if not.
  absl::Status CheckState(const Tensor& parameter,
                          const ParameterState& state) const;

  // The arithmetic alone, for a caller that keeps parameters and state in
  // memory of its own. Every pointer is aligned to its item; slots hold
  // `initial` before the first update. Elements do not depend on each other,
  // except for LAMB, whose norms are taken over the span.
  virtual void Update(const UpdateSpan& span) const = 0;

 protected:
  UpdateRule(RuleSpec spec, std::vector<Slot> slots, GradientKind kind)
      : spec_(std::move(spec)),
        slots_(std::move(slots)),
        gradient_kind_(kind) {}

 private:
  // Makes the slots that `state` lacks; `state` is unchanged after an error.
  absl::Status PrepareState(const Tensor& parameter,
                            ParameterState& state) const;

  const RuleSpec spec_;
  const std::vector<Slot> slots_;
  const GradientKind gradient_kind_;
};

}  // namespace hawser::optim

#endif  // HAWSER_OPTIM_UPDATE_RULE_H_
