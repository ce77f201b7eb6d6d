#ifndef HAWSER_OPTIM_LR_SCHEDULE_H_
#define HAWSER_OPTIM_LR_SCHEDULE_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"

namespace hawser::optim {

// The learning rate of a parameter group at step t (0, 1, 2, ...). `base` is
// the initial learning rate of the group. The caller chooses if a step is an
// epoch or a batch. Depends only on its arguments, so that training can resume
// at any step. A lambda works:
//
//   LrSchedule halving = [](double base, int64_t t) { return base / (1 << t);
//   };
//
// The schedules below give the same numbers as PyTorch. In their formulas, base
// and t are these arguments. Invalid options give kInvalidArgument.
using LrSchedule =
    std::function<absl::StatusOr<double>(double base, int64_t step)>;

// base * gamma^floor(t / step_size).
absl::StatusOr<LrSchedule> StepLr(int64_t step_size, double gamma = 0.1);

// base * gamma^(number of milestones reached).
absl::StatusOr<LrSchedule> MultiStepLr(std::vector<int64_t> milestones,
                                       double gamma = 0.1);

// base * factor until step `total_steps`, then base. `factor` in [0, 1].
struct ConstantLrOptions {
  double factor = 1.0 / 3;
  int64_t total_steps = 5;
};
absl::StatusOr<LrSchedule> ConstantLr(const ConstantLrOptions& options);

// Warm-up: linear from base * start_factor to base * end_factor at step
// `total_steps`. Factors in [0, 1].
struct LinearLrOptions {
  double start_factor = 1.0 / 3;
  double end_factor = 1;
  int64_t total_steps = 5;
};
absl::StatusOr<LrSchedule> LinearLr(const LinearLrOptions& options);

// base * gamma^t.
absl::StatusOr<LrSchedule> ExponentialLr(double gamma);

// base * (1 - min(t, total_steps) / total_steps)^power.
struct PolynomialLrOptions {
  int64_t total_steps = 5;
  double power = 1;
};
absl::StatusOr<LrSchedule> PolynomialLr(const PolynomialLrOptions& options);

// Half a cosine from base down to min_lr in `period` steps, and back in the
// next `period` steps.
struct CosineAnnealingLrOptions {
  int64_t period = 0;
  double min_lr = 0;
};
absl::StatusOr<LrSchedule> CosineAnnealingLr(
    const CosineAnnealingLrOptions& options);

// Half a cosine from base down to min_lr, with restarts. The first period has
// `first_period` steps, each later one `multiplier` times as many as the
// previous one. Loshchilov and Hutter, "SGDR", 2017.
struct CosineWarmRestartsOptions {
  int64_t first_period = 0;
  int64_t multiplier = 1;
  double min_lr = 0;
};
absl::StatusOr<LrSchedule> CosineWarmRestarts(
    const CosineWarmRestartsOptions& options);

// Rises from the initial value max_lr / div_factor to max_lr, then falls to the
// initial value / final_div_factor. With three_phase, falls to the initial
// value in between. `base` is not used. Smith and Topin, "Super-Convergence",
// 2018.
//
// The schedule returns kOutOfRange beyond step `total_steps`.
struct OneCycleOptions {
  double max_lr = 0;
  int64_t total_steps = 0;
  double rising_share = 0.3;  // Fraction of the steps; in [0, 1].
  bool linear = false;        // Straight lines instead of half cosines.
  double div_factor = 25;
  double final_div_factor = 1e4;
  bool three_phase = false;
  // Used only by OneCycleMomentum.
  double base_momentum = 0.85;
  double max_momentum = 0.95;
};
absl::StatusOr<LrSchedule> OneCycleLr(const OneCycleOptions& options);

// The momentum for OneCycleLr, low where the learning rate is high. Use it with
// an OptionScheduler of "momentum" or "beta1".
absl::StatusOr<LrSchedule> OneCycleMomentum(const OneCycleOptions& options);

// schedules[0] until milestones[0], then schedules[1] with steps counted from
// 0, and so on. For example, LinearLr and CosineAnnealingLr are a warm-up
// followed by a decay. kInvalidArgument unless the milestones increase and
// their number is one less than that of the schedules.
absl::StatusOr<LrSchedule> SequentialLr(std::vector<LrSchedule> schedules,
                                        std::vector<int64_t> milestones);

// Applies all schedules in each step. The result of a schedule is the base of
// the next one.
LrSchedule ChainedLr(std::vector<LrSchedule> schedules);

}  // namespace hawser::optim

#endif  // HAWSER_OPTIM_LR_SCHEDULE_H_
