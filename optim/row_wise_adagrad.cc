#include "optim/row_wise_adagrad.h"

#include <cmath>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/status_macros.h"
#include "optim/internal/option_table.h"
#include "optim/internal/update_targets.h"
#include "optim/update_rule.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "optim/row_wise_adagrad.cc"
#include "hwy/foreach_target.h"
// Must be included after foreach_target.h.
#include "hwy/highway.h"
#include "optim/internal/update_loop-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hawser::optim {
namespace HWY_NAMESPACE {

// First pass: adds the squares of the gradients to a total.
struct AddSquares {
  double& total;

  template <class T>
  void operator()(const Block<T>& block) const {
    const hn::ScalableTag<T> d;
    const size_t lanes = hn::Lanes(d);
    auto sum = hn::Zero(d);
    size_t i = 0;
    for (; i + lanes <= block.count; i += lanes) {
      const auto g = hn::LoadU(d, block.gradient + i);
      sum = hn::MulAdd(g, g, sum);
    }
    total += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, sum)));
    for (; i < block.count; ++i) {
      const double g = static_cast<double>(block.gradient[i]);
      total += g * g;
    }
  }
};

// Second pass: moves along the gradient by `step`.
template <class T>
struct MoveKernel {
  template <class D, class V>
  HWY_INLINE void operator()(D d, V& p, V g, V&, V&, V&) const {
    p = hn::MulAdd(hn::Set(d, step), g, p);
  }

  T step;
};

struct MoveRow {
  double step;

  template <class T>
  void operator()(const Block<T>& block) const {
    UpdateBlock<0>(MoveKernel<T>{static_cast<T>(step)}, block);
  }
};

// `T` is the type of the sum.
template <class T>
HWY_INLINE void UpdateRow(const RowWiseAdagradOptions& options,
                          const UpdateSpan& span) {
  // The passes must not treat the sum as one number per element.
  UpdateSpan row = span;
  row.slots = {};
  double squares = 0;
  VisitBlocks(row, AddSquares{squares});
  T& sum = *static_cast<T*>(span.slots[0]);
  sum += static_cast<T>(squares / static_cast<double>(span.count));
  const double root = std::sqrt(static_cast<double>(sum));
  const double step = span.learning_rate / (root + options.eps);
  VisitBlocks(row, MoveRow{options.maximize ? step : -step});
}

void RowWiseAdagradUpdate(const RowWiseAdagradOptions& options,
                          std::span<const UpdateSpan> spans) {
  const tensor::FlushDenormals flush;
  for (const UpdateSpan& span : spans) {
    if (span.count == 0) continue;
    if (span.dtype == tensor::DType::kF64) {
      UpdateRow<double>(options, span);
    } else {
      UpdateRow<float>(options, span);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace hawser::optim
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hawser::optim {
namespace {

HWY_EXPORT(RowWiseAdagradUpdate);

using internal::CheckOption;

constexpr internal::OptionField<RowWiseAdagradOptions> kTable[] = {
    {"lr", &RowWiseAdagradOptions::lr},
    {"initial_accumulator_value",
     &RowWiseAdagradOptions::initial_accumulator_value},
    {"eps", &RowWiseAdagradOptions::eps},
    {"maximize", &RowWiseAdagradOptions::maximize},
};

class RowWiseAdagradRule final : public UpdateRule {
 public:
  explicit RowWiseAdagradRule(const RowWiseAdagradOptions& options)
      : UpdateRule(RowWiseAdagrad(options),
                   {{"sum", options.initial_accumulator_value, true}},
                   GradientKind::kDenseAndRows),
        options_(options) {}

  void Update(std::span<const UpdateSpan> spans) const override {
    HWY_DYNAMIC_DISPATCH(RowWiseAdagradUpdate)(options_, spans);
  }
  bool depends_on_step() const override { return false; }

 private:
  const RowWiseAdagradOptions options_;
};

}  // namespace

RuleSpec RowWiseAdagrad(const RowWiseAdagradOptions& options) {
  return internal::WriteOptions<RowWiseAdagradOptions>("RowWiseAdagrad",
                                                       options, kTable);
}

absl::StatusOr<std::unique_ptr<UpdateRule>> MakeRowWiseAdagrad(
    const RuleSpec& spec) {
  ASSIGN_OR_RETURN(const RowWiseAdagradOptions o,
                   internal::ReadOptions<RowWiseAdagradOptions>(spec, kTable));
  RETURN_IF_ERROR(CheckOption("RowWiseAdagrad", "lr", o.lr, {}));
  RETURN_IF_ERROR(CheckOption("RowWiseAdagrad", "initial_accumulator_value",
                              o.initial_accumulator_value, {}));
  RETURN_IF_ERROR(CheckOption("RowWiseAdagrad", "eps", o.eps, {}));
  return std::make_unique<RowWiseAdagradRule>(o);
}

}  // namespace hawser::optim
#endif  // HWY_ONCE
