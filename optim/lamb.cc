#include "optim/lamb.h"

#include <algorithm>
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
#define HWY_TARGET_INCLUDE "optim/lamb.cc"
#include "hwy/foreach_target.h"
// Must be included after foreach_target.h.
#include "hwy/highway.h"
#include "optim/internal/update_loop-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hawser::optim {
namespace HWY_NAMESPACE {

template <class T>
struct LambConstants {
  LambConstants(const LambOptions& o, const UpdateSpan& span)
      : decay(static_cast<T>(o.weight_decay)),
        sign(o.maximize ? -1 : 1),
        beta1(static_cast<T>(o.beta1)),
        beta2(static_cast<T>(o.beta2)),
        rest1(static_cast<T>(1 - o.beta1)),
        rest2(static_cast<T>(1 - o.beta2)),
        correction1(static_cast<T>(1 - std::pow(o.beta1, span.step))),
        correction2(static_cast<T>(1 - std::pow(o.beta2, span.step))),
        eps(static_cast<T>(o.eps)) {}

  // The paper's r plus weight decay, from the updated moments.
  template <class D, class V>
  HWY_INLINE V Direction(D d, V p, V m, V v) const {
    const V mean = hn::Div(m, hn::Set(d, correction1));
    const V root = hn::Sqrt(hn::Div(v, hn::Set(d, correction2)));
    const V r = hn::Div(mean, hn::Add(root, hn::Set(d, eps)));
    return decay == 0 ? r : hn::MulAdd(hn::Set(d, decay), p, r);
  }

  T decay, sign, beta1, beta2, rest1, rest2, correction1, correction2, eps;
};

// Sums of the squared elements of parameter and direction.
struct SquaredNorms {
  double parameter = 0;
  double direction = 0;
};

// First pass: updates the moments and computes the norms. Sums within a chunk
// are vectors of T; their total is f64.
template <class T>
struct UpdateMoments {
  template <class D, class V>
  HWY_INLINE void Vector(D d, const Block<T>& block, size_t i, size_t count,
                         V& pp, V& rr) const {
    const auto g =
        hn::Mul(hn::LoadU(d, block.gradient + i), hn::Set(d, c.sign));
    const auto m =
        hn::MulAdd(hn::Set(d, c.beta1), hn::LoadU(d, block.slots[0] + i),
                   hn::Mul(hn::Set(d, c.rest1), g));
    const auto v =
        hn::MulAdd(hn::Set(d, c.beta2), hn::LoadU(d, block.slots[1] + i),
                   hn::Mul(hn::Set(d, c.rest2), hn::Mul(g, g)));
    hn::StoreU(m, d, block.slots[0] + i);
    hn::StoreU(v, d, block.slots[1] + i);
    const auto p = hn::LoadU(d, block.parameter + i);
    // The zeros that pad a tail would give 0 / 0 without eps.
    const auto r =
        hn::IfThenElseZero(hn::FirstN(d, count), c.Direction(d, p, m, v));
    pp = hn::MulAdd(p, p, pp);
    rr = hn::MulAdd(r, r, rr);
  }

  HWY_INLINE void Chunk(const Block<T>& block, size_t begin, size_t end) {
    const hn::ScalableTag<T> d;
    const size_t lanes = hn::Lanes(d);
    auto pp = hn::Zero(d);
    auto rr = hn::Zero(d);
    size_t i = begin;
    for (; i + lanes <= end; i += lanes) Vector(d, block, i, lanes, pp, rr);
    if (i < end) {
      Tail<T> tail(block, i);
      Vector(d, tail.block(), 0, end - i, pp, rr);
      tail.WriteBack();
    }
    norms.parameter += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, pp)));
    norms.direction += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, rr)));
  }

  const LambConstants<T>& c;
  SquaredNorms& norms;
};

struct VisitMoments {
  const LambOptions& options;
  const UpdateSpan& span;
  SquaredNorms& norms;

  template <class T>
  void operator()(const Block<T>& block) const {
    constexpr size_t kChunk = 1024;
    const LambConstants<T> constants(options, span);
    UpdateMoments<T> moments{constants, norms};
    for (size_t i = 0; i < block.count; i += kChunk) {
      moments.Chunk(block, i, std::min(i + kChunk, block.count));
    }
  }
};

// Second pass, given lr times the trust ratio.
template <class T>
struct MoveKernel : LambConstants<T> {
  MoveKernel(const LambOptions& o, const UpdateSpan& span, double move)
      : LambConstants<T>(o, span), step(static_cast<T>(-move)) {}

  template <class D, class V>
  HWY_INLINE void operator()(D d, V& p, V, V& m, V& v, V&) const {
    p = hn::MulAdd(hn::Set(d, step), this->Direction(d, p, m, v), p);
  }

  T step;
};

struct VisitMove {
  const LambOptions& options;
  const UpdateSpan& span;
  double step;

  template <class T>
  void operator()(const Block<T>& block) const {
    UpdateBlock<2>(MoveKernel<T>(options, span, step), block);
  }
};

void LambUpdate(const LambOptions& options, std::span<const UpdateSpan> spans) {
  const tensor::FlushDenormals flush;
  for (const UpdateSpan& span : spans) {
    SquaredNorms norms;
    VisitBlocks(span, VisitMoments{options, span, norms});
    double ratio = 1;
    if (norms.parameter > 0 && norms.direction > 0) {
      ratio = std::sqrt(norms.parameter / norms.direction);
    }
    VisitBlocks(span, VisitMove{options, span, span.learning_rate * ratio});
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace hawser::optim
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hawser::optim {
namespace {

HWY_EXPORT(LambUpdate);

using internal::CheckOption;

constexpr internal::OptionField<LambOptions> kTable[] = {
    {"lr", &LambOptions::lr},
    {"beta1", &LambOptions::beta1},
    {"beta2", &LambOptions::beta2},
    {"eps", &LambOptions::eps},
    {"weight_decay", &LambOptions::weight_decay},
    {"maximize", &LambOptions::maximize},
};

class LambRule final : public UpdateRule {
 public:
  explicit LambRule(const LambOptions& options)
      : UpdateRule(Lamb(options), {{"exp_avg", 0}, {"exp_avg_sq", 0}},
                   GradientKind::kDense),
        options_(options) {}

  void Update(std::span<const UpdateSpan> spans) const override {
    HWY_DYNAMIC_DISPATCH(LambUpdate)(options_, spans);
  }
  bool is_elementwise() const override { return false; }

 private:
  const LambOptions options_;
};

}  // namespace

RuleSpec Lamb(const LambOptions& options) {
  return internal::WriteOptions<LambOptions>("LAMB", options, kTable);
}

absl::StatusOr<std::unique_ptr<UpdateRule>> MakeLamb(const RuleSpec& spec) {
  ASSIGN_OR_RETURN(const LambOptions o,
                   internal::ReadOptions<LambOptions>(spec, kTable));
  RETURN_IF_ERROR(CheckOption("LAMB", "lr", o.lr, {}));
  RETURN_IF_ERROR(CheckOption("LAMB", "beta1", o.beta1, {.high = 1}));
  RETURN_IF_ERROR(CheckOption("LAMB", "beta2", o.beta2, {.high = 1}));
  RETURN_IF_ERROR(CheckOption("LAMB", "eps", o.eps, {}));
  RETURN_IF_ERROR(CheckOption("LAMB", "weight_decay", o.weight_decay, {}));
  return std::make_unique<LambRule>(o);
}

}  // namespace hawser::optim
#endif  // HWY_ONCE
