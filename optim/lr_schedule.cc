#include "optim/lr_schedule.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "async/status_macros.h"

namespace hawser::optim {
namespace {

absl::Status CheckPositive(absl::string_view what, int64_t value) {
  if (value > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, " must be above 0, not ", value));
}

absl::Status CheckFinite(absl::string_view what, double value) {
  if (std::isfinite(value)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, " must be finite, not ", value));
}

absl::Status CheckShare(absl::string_view what, double value) {
  if (value >= 0 && value <= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, " must be in [0, 1], not ", value));
}

absl::Status CheckIncreasing(absl::string_view what,
                             const std::vector<int64_t>& milestones) {
  const auto repeated = std::adjacent_find(milestones.begin(), milestones.end(),
                                           std::greater_equal<>());
  if (repeated == milestones.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, ": milestones must increase, but ", repeated[1],
                   " follows ", repeated[0]));
}

// The number of milestones that are at most `step`.
int64_t Reached(const std::vector<int64_t>& milestones, int64_t step) {
  return std::upper_bound(milestones.begin(), milestones.end(), step) -
         milestones.begin();
}

// Interpolates along half a cosine, from `from` at share 0 to `to` at share 1.
double CosineBetween(double from, double to, double share) {
  return to + (from - to) * (1 + std::cos(std::numbers::pi * share)) / 2;
}

double LineBetween(double from, double to, double share) {
  return from + (to - from) * share;
}

// The position of a step in a one-cycle run. Phase 0 rises, phase 1, if any,
// falls to the initial value, and phase 2 falls to the final value.
struct CyclePlace {
  int phase;
  double share;
};

absl::Status CheckOneCycle(const OneCycleOptions& o) {
  RETURN_IF_ERROR(CheckPositive("OneCycle: total_steps", o.total_steps));
  RETURN_IF_ERROR(CheckShare("OneCycle: rising_share", o.rising_share));
  RETURN_IF_ERROR(CheckFinite("OneCycle: max_lr", o.max_lr));
  if (!(o.div_factor > 0 && o.final_div_factor > 0)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "OneCycle: div_factor and final_div_factor must be above 0, not ",
        o.div_factor, " and ", o.final_div_factor));
  }
  return absl::OkStatus();
}

absl::StatusOr<CyclePlace> OneCyclePlace(const OneCycleOptions& o,
                                         int64_t step) {
  if (step > o.total_steps) {
    return absl::OutOfRangeError(
        absl::StrCat("OneCycle: step ", step, " of ", o.total_steps,
                     "; set total_steps to the length of the training"));
  }
  const double total = static_cast<double>(o.total_steps);
  std::vector<double> ends = {o.rising_share * total - 1};
  if (o.three_phase) ends.push_back(2 * o.rising_share * total - 2);
  ends.push_back(total - 1);
  const double t = static_cast<double>(step);
  size_t i = 0;
  while (i + 1 < ends.size() && t > ends[i]) ++i;
  const double start = i == 0 ? 0 : ends[i - 1];
  const double length = ends[i] - start;
  // A phase of length 0 is complete at its start.
  const double share = length == 0 ? 1 : (t - start) / length;
  const bool last = i + 1 == ends.size();
  return CyclePlace{last ? 2 : static_cast<int>(i), share};
}

}  // namespace

absl::StatusOr<LrSchedule> StepLr(int64_t step_size, double gamma) {
  RETURN_IF_ERROR(CheckPositive("StepLr: step_size", step_size));
  RETURN_IF_ERROR(CheckFinite("StepLr: gamma", gamma));
  return [=](double base, int64_t t) {
    return base * std::pow(gamma, t / step_size);
  };
}

absl::StatusOr<LrSchedule> MultiStepLr(std::vector<int64_t> milestones,
                                       double gamma) {
  RETURN_IF_ERROR(CheckIncreasing("MultiStepLr", milestones));
  RETURN_IF_ERROR(CheckFinite("MultiStepLr: gamma", gamma));
  return [milestones = std::move(milestones), gamma](double base, int64_t t) {
    return base * std::pow(gamma, Reached(milestones, t));
  };
}

absl::StatusOr<LrSchedule> ConstantLr(const ConstantLrOptions& options) {
  RETURN_IF_ERROR(CheckShare("ConstantLr: factor", options.factor));
  return [o = options](double base, int64_t t) {
    return t < o.total_steps ? base * o.factor : base;
  };
}

absl::StatusOr<LrSchedule> LinearLr(const LinearLrOptions& options) {
  RETURN_IF_ERROR(CheckShare("LinearLr: start_factor", options.start_factor));
  RETURN_IF_ERROR(CheckShare("LinearLr: end_factor", options.end_factor));
  RETURN_IF_ERROR(CheckPositive("LinearLr: total_steps", options.total_steps));
  return [o = options](double base, int64_t t) {
    const double share = static_cast<double>(std::min(t, o.total_steps)) /
                         static_cast<double>(o.total_steps);
    return base * LineBetween(o.start_factor, o.end_factor, share);
  };
}

absl::StatusOr<LrSchedule> ExponentialLr(double gamma) {
  RETURN_IF_ERROR(CheckFinite("ExponentialLr: gamma", gamma));
  return [=](double base, int64_t t) { return base * std::pow(gamma, t); };
}

absl::StatusOr<LrSchedule> PolynomialLr(const PolynomialLrOptions& options) {
  RETURN_IF_ERROR(
      CheckPositive("PolynomialLr: total_steps", options.total_steps));
  RETURN_IF_ERROR(CheckFinite("PolynomialLr: power", options.power));
  return [o = options](double base, int64_t t) {
    const double share = static_cast<double>(std::min(t, o.total_steps)) /
                         static_cast<double>(o.total_steps);
    return base * std::pow(1 - share, o.power);
  };
}

absl::StatusOr<LrSchedule> CosineAnnealingLr(
    const CosineAnnealingLrOptions& options) {
  RETURN_IF_ERROR(CheckPositive("CosineAnnealingLr: period", options.period));
  RETURN_IF_ERROR(CheckFinite("CosineAnnealingLr: min_lr", options.min_lr));
  return [o = options](double base, int64_t t) {
    return CosineBetween(
        base, o.min_lr, static_cast<double>(t) / static_cast<double>(o.period));
  };
}

absl::StatusOr<LrSchedule> CosineWarmRestarts(
    const CosineWarmRestartsOptions& options) {
  RETURN_IF_ERROR(
      CheckPositive("CosineWarmRestarts: first_period", options.first_period));
  RETURN_IF_ERROR(
      CheckPositive("CosineWarmRestarts: multiplier", options.multiplier));
  RETURN_IF_ERROR(CheckFinite("CosineWarmRestarts: min_lr", options.min_lr));
  return [o = options](double base, int64_t t) {
    int64_t period = o.first_period;
    if (o.multiplier == 1) t %= period;
    while (t >= period) {
      t -= period;
      period *= o.multiplier;
    }
    return CosineBetween(base, o.min_lr,
                         static_cast<double>(t) / static_cast<double>(period));
  };
}

absl::StatusOr<LrSchedule> OneCycleLr(const OneCycleOptions& options) {
  RETURN_IF_ERROR(CheckOneCycle(options));
  return [o = options](double, int64_t t) -> absl::StatusOr<double> {
    ASSIGN_OR_RETURN(const CyclePlace place, OneCyclePlace(o, t));
    const double first = o.max_lr / o.div_factor;
    const double last = first / o.final_div_factor;
    const bool falls_to_first = o.three_phase && place.phase == 1;
    const double from = place.phase == 0 || (o.three_phase && place.phase == 2)
                            ? first
                            : o.max_lr;
    const double to =
        place.phase == 0 ? o.max_lr : (falls_to_first ? first : last);
    return o.linear ? LineBetween(from, to, place.share)
                    : CosineBetween(from, to, place.share);
  };
}

absl::StatusOr<LrSchedule> OneCycleMomentum(const OneCycleOptions& options) {
  RETURN_IF_ERROR(CheckOneCycle(options));
  RETURN_IF_ERROR(CheckShare("OneCycle: base_momentum", options.base_momentum));
  RETURN_IF_ERROR(CheckShare("OneCycle: max_momentum", options.max_momentum));
  return [o = options](double, int64_t t) -> absl::StatusOr<double> {
    ASSIGN_OR_RETURN(const CyclePlace place, OneCyclePlace(o, t));
    const bool rests = o.three_phase && place.phase == 2;
    const double from =
        place.phase == 0 || rests ? o.max_momentum : o.base_momentum;
    const double to = place.phase == 0 ? o.base_momentum : o.max_momentum;
    return o.linear ? LineBetween(from, to, place.share)
                    : CosineBetween(from, to, place.share);
  };
}

absl::StatusOr<LrSchedule> SequentialLr(std::vector<LrSchedule> schedules,
                                        std::vector<int64_t> milestones) {
  if (schedules.size() != milestones.size() + 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("SequentialLr: ", schedules.size(), " schedules require ",
                     static_cast<int64_t>(schedules.size()) - 1,
                     " milestones, not ", milestones.size()));
  }
  RETURN_IF_ERROR(CheckIncreasing("SequentialLr", milestones));
  return [schedules = std::move(schedules), milestones = std::move(milestones)](
             double base, int64_t t) {
    const int64_t i = Reached(milestones, t);
    return schedules[i](base, i == 0 ? t : t - milestones[i - 1]);
  };
}

LrSchedule ChainedLr(std::vector<LrSchedule> schedules) {
  return [schedules = std::move(schedules)](
             double base, int64_t t) -> absl::StatusOr<double> {
    for (const LrSchedule& schedule : schedules) {
      ASSIGN_OR_RETURN(base, schedule(base, t));
    }
    return base;
  };
}

}  // namespace hawser::optim
