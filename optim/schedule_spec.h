// Learning-rate schedules as values.

#ifndef HAWSER_OPTIM_SCHEDULE_SPEC_H_
#define HAWSER_OPTIM_SCHEDULE_SPEC_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "optim/lr_schedule.h"
#include "optim/rule_spec.h"

namespace hawser::optim {

// Options of StepLr and ExponentialLr.
struct StepLrOptions {
  int64_t step_size = 0;
  double gamma = 0.1;
};
struct ExponentialLrOptions {
  double gamma = 1;
};

// The description of a schedule of lr_schedule.h. Sent to other workers and
// written to files, so that the same schedule can be created from it. For
// example, a linear warm-up of 1,000 steps that a decay follows:
//
//   ScheduleSpec::Linear({.start_factor = 0.01, .total_steps = 1000})
//       .Then(1000, ScheduleSpec::Cosine({.period = 100'000}))
//
// Unlike those of lr_schedule.h, its rates are at least 0 and not above the
// larger one of base and min_lr. A plain value.
struct ScheduleSpec {
  static constexpr size_t kMaxPhases = 16;
  static constexpr int64_t kMaxStep = int64_t{1} << 53;

  // A schedule from the step `first_step` on, from which it counts its own
  // steps.
  struct Phase {
    // Its name is that of PyTorch: "ConstantLR", "LinearLR", "StepLR",
    // "ExponentialLR", "PolynomialLR", "CosineAnnealingLR" or
    // "CosineAnnealingWarmRestarts". Its options are the fields of the options
    // structs.
    RuleSpec schedule;
    int64_t first_step = 0;

    friend bool operator==(const Phase&, const Phase&) = default;
  };

  static ScheduleSpec Constant(const ConstantLrOptions& options);
  static ScheduleSpec Linear(const LinearLrOptions& options);
  static ScheduleSpec Step(const StepLrOptions& options);
  static ScheduleSpec Exponential(const ExponentialLrOptions& options);
  static ScheduleSpec Polynomial(const PolynomialLrOptions& options);
  static ScheduleSpec Cosine(const CosineAnnealingLrOptions& options);
  static ScheduleSpec CosineWarmRestarts(
      const CosineWarmRestartsOptions& options);

  // This schedule below the step `step`, and `next` from there on.
  ScheduleSpec Then(int64_t step, const ScheduleSpec& next) const;

  // Without phases the rate is the base.
  bool is_constant() const { return phases.empty(); }
  // "LinearLR(start_factor=0.01,...), from step 1000 CosineAnnealingLR(...)".
  std::string ToString() const;

  friend bool operator==(const ScheduleSpec&, const ScheduleSpec&) = default;

  // The first one begins at step 0.
  std::vector<Phase> phases = {};
};

// Creates the schedule, which gives rates for all steps from 0 to kMaxStep.
// kInvalidArgument: names the phase and the option that is unknown or out of
// range.
absl::StatusOr<LrSchedule> MakeLrSchedule(const ScheduleSpec& spec);

// Returns `spec` with all options of its phases, in a fixed order: two
// descriptions of the same schedule become equal. Errors of MakeLrSchedule.
absl::StatusOr<ScheduleSpec> NormalizeScheduleSpec(const ScheduleSpec& spec);

}  // namespace hawser::optim

#endif  // HAWSER_OPTIM_SCHEDULE_SPEC_H_
