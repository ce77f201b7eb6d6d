#ifndef HAWSER_OPTIM_LR_SCHEDULE_H_
#define HAWSER_OPTIM_LR_SCHEDULE_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"

namespace hawser::optim {

// The learning rate at step t (0, 1, 2, ...; an epoch or a batch, as the caller
// counts) of a parameter group that starts from `base`. A function of its
// arguments alone, so that training can go on from any step. A lambda will do:
//
//   LrSchedule halving = [](double base, int64_t t) { return base / (1 << t);
//   };
//
// The schedules below give PyTorch's numbers; `base` and t are those arguments.
// Those with options give kInvalidArgument where they make no sense.
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

// From base * start_factor, by equal amounts, to base * end_factor at step
// `total_steps`: a warm-up. Factors in [0, 1].
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

// Half a cosine from base down to min_lr within `period` steps, and up again
// within the next.
struct CosineAnnealingLrOptions {
  int64_t period = 0;
  double min_lr = 0;
};
absl::StatusOr<LrSchedule> CosineAnnealingLr(
    const CosineAnnealingLrOptions& options);

// Half a cosine from base down to min_lr, restarting after `first_period`
// steps, then after multiplier times as many, and so on. Loshchilov and Hutter,
// "SGDR", 2017.
struct CosineWarmRestartsOptions {
  int64_t first_period = 0;
  int64_t multiplier = 1;
  double min_lr = 0;
};
absl::StatusOr<LrSchedule> CosineWarmRestarts(
    const CosineWarmRestartsOptions& options);

// Up from max_lr / div_factor to max_lr, then down to a final_div_factor-th of
// where it began; with three_phase down to where it began first. `base` is not
// used. Smith and Topin, "Super-Convergence", 2018.
//
// The schedule gives kOutOfRange beyond step `total_steps`.
struct OneCycleOptions {
  double max_lr = 0;
  int64_t total_steps = 0;
  double rising_share = 0.3;  // Of the steps; in [0, 1].
  bool linear = false;        // Straight lines instead of half cosines.
  double div_factor = 25;
  double final_div_factor = 1e4;
  bool three_phase = false;
  // Only for OneCycleMomentum.
  double base_momentum = 0.85;
  double max_momentum = 0.95;
};
absl::StatusOr<LrSchedule> OneCycleLr(const OneCycleOptions& options);

// The momentum that goes with it, low where the learning rate is high: for an
// OptionScheduler of "momentum" or "beta1".
absl::StatusOr<LrSchedule> OneCycleMomentum(const OneCycleOptions& options);

// schedules[0] until milestones[0], then schedules[1] counting from 0 again,
// and so on: LinearLr before CosineAnnealingLr is a warm-up before a decay.
// kInvalidArgument unless milestones increase and are one fewer.
absl::StatusOr<LrSchedule> SequentialLr(std::vector<LrSchedule> schedules,
                                        std::vector<int64_t> milestones);

// Each schedule with the result of the one before it for its base.
LrSchedule ChainedLr(std::vector<LrSchedule> schedules);

}  // namespace hawser::optim

#endif  // HAWSER_OPTIM_LR_SCHEDULE_H_
