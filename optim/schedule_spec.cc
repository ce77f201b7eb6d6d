#include "optim/schedule_spec.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "optim/internal/option_table.h"
#include "optim/lr_schedule.h"
#include "optim/rule_spec.h"

namespace hawser::optim {
namespace {

using internal::CheckOption;
using internal::OptionField;

constexpr double kMaxMultiplier = 1000;

constexpr OptionField<ConstantLrOptions> kConstant[] = {
    {"factor", &ConstantLrOptions::factor},
    {"total_steps", &ConstantLrOptions::total_steps},
};
constexpr OptionField<LinearLrOptions> kLinear[] = {
    {"start_factor", &LinearLrOptions::start_factor},
    {"end_factor", &LinearLrOptions::end_factor},
    {"total_steps", &LinearLrOptions::total_steps},
};
constexpr OptionField<StepLrOptions> kStep[] = {
    {"step_size", &StepLrOptions::step_size},
    {"gamma", &StepLrOptions::gamma},
};
constexpr OptionField<ExponentialLrOptions> kExponential[] = {
    {"gamma", &ExponentialLrOptions::gamma},
};
constexpr OptionField<PolynomialLrOptions> kPolynomial[] = {
    {"total_steps", &PolynomialLrOptions::total_steps},
    {"power", &PolynomialLrOptions::power},
};
constexpr OptionField<CosineAnnealingLrOptions> kCosine[] = {
    {"period", &CosineAnnealingLrOptions::period},
    {"min_lr", &CosineAnnealingLrOptions::min_lr},
};
constexpr OptionField<CosineWarmRestartsOptions> kCosineWarmRestarts[] = {
    {"first_period", &CosineWarmRestartsOptions::first_period},
    {"multiplier", &CosineWarmRestartsOptions::multiplier},
    {"min_lr", &CosineWarmRestartsOptions::min_lr},
};

// The names of schedules.
constexpr char kConstantName[] = "ConstantLR";
constexpr char kLinearName[] = "LinearLR";
constexpr char kStepName[] = "StepLR";
constexpr char kExponentialName[] = "ExponentialLR";
constexpr char kPolynomialName[] = "PolynomialLR";
constexpr char kCosineName[] = "CosineAnnealingLR";
constexpr char kCosineWarmRestartsName[] = "CosineAnnealingWarmRestarts";

// A schedule, and its description with all options.
struct Made {
  RuleSpec spec;
  LrSchedule schedule;
};

template <class Options, size_t kFields>
ScheduleSpec OnePhase(const char* name, const Options& options,
                      const OptionField<Options> (&table)[kFields]) {
  return {
      .phases = {{internal::WriteOptions<Options>(name, options, table), 0}}};
}

// Reads the options of `spec`, checks them by `check`, and has `make` create
// the schedule.
template <class Options, size_t kFields, class Check, class Make>
absl::StatusOr<Made> MakeFrom(const RuleSpec& spec,
                              const OptionField<Options> (&table)[kFields],
                              const Check& check, const Make& make) {
  ASSIGN_OR_RETURN(const Options options,
                   internal::ReadOptions<Options>(spec, table));
  RETURN_IF_ERROR(check(options));
  ASSIGN_OR_RETURN(LrSchedule schedule, make(options));
  return Made{internal::WriteOptions<Options>(spec.name, options, table),
              std::move(schedule)};
}

absl::Status CheckGamma(const RuleSpec& spec, double gamma) {
  return CheckOption(spec.name, "gamma", gamma,
                     {.high = 1, .low_included = false, .high_included = true});
}

absl::StatusOr<Made> MakePhase(const RuleSpec& spec) {
  const auto any = [](const auto&) { return absl::OkStatus(); };
  const auto from_zero = [&](const char* option, double value) {
    return CheckOption(spec.name, option, value, {});
  };
  if (spec.name == kConstantName) {
    return MakeFrom(spec, kConstant, any, ConstantLr);
  }
  if (spec.name == kLinearName) return MakeFrom(spec, kLinear, any, LinearLr);
  if (spec.name == kStepName) {
    return MakeFrom(
        spec, kStep,
        [&](const StepLrOptions& o) { return CheckGamma(spec, o.gamma); },
        [](const StepLrOptions& o) { return StepLr(o.step_size, o.gamma); });
  }
  if (spec.name == kExponentialName) {
    return MakeFrom(
        spec, kExponential,
        [&](const ExponentialLrOptions& o) {
          return CheckGamma(spec, o.gamma);
        },
        [](const ExponentialLrOptions& o) { return ExponentialLr(o.gamma); });
  }
  if (spec.name == kPolynomialName) {
    return MakeFrom(
        spec, kPolynomial,
        [&](const PolynomialLrOptions& o) {
          return from_zero("power", o.power);
        },
        PolynomialLr);
  }
  if (spec.name == kCosineName) {
    return MakeFrom(
        spec, kCosine,
        [&](const CosineAnnealingLrOptions& o) {
          return from_zero("min_lr", o.min_lr);
        },
        CosineAnnealingLr);
  }
  if (spec.name == kCosineWarmRestartsName) {
    return MakeFrom(
        spec, kCosineWarmRestarts,
        [&](const CosineWarmRestartsOptions& o) {
          RETURN_IF_ERROR(from_zero("min_lr", o.min_lr));
          return CheckOption(
              spec.name, "multiplier", static_cast<double>(o.multiplier),
              {.low = 1, .high = kMaxMultiplier, .high_included = true});
        },
        optim::CosineWarmRestarts);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "unknown schedule \"", spec.name, "\"; use one of ", kConstantName, ", ",
      kLinearName, ", ", kStepName, ", ", kExponentialName, ", ",
      kPolynomialName, ", ", kCosineName, ", ", kCosineWarmRestartsName));
}

absl::Status CheckSteps(const ScheduleSpec& spec) {
  if (spec.phases.size() > ScheduleSpec::kMaxPhases) {
    return absl::InvalidArgumentError(
        absl::StrCat("a schedule has at most ", ScheduleSpec::kMaxPhases,
                     " phases, not ", spec.phases.size()));
  }
  int64_t least = 0;
  for (size_t i = 0; i < spec.phases.size(); ++i) {
    const int64_t first = spec.phases[i].first_step;
    if (first < least || first > ScheduleSpec::kMaxStep ||
        (i == 0 && first != 0)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "phase ", i, " of a schedule begins at step ", first,
          "; the first one begins at 0, and each later than the one before"));
    }
    least = first + 1;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Made>> MakePhases(const ScheduleSpec& spec) {
  RETURN_IF_ERROR(CheckSteps(spec));
  std::vector<Made> made;
  for (const ScheduleSpec::Phase& phase : spec.phases) {
    ASSIGN_OR_RETURN(made.emplace_back(), MakePhase(phase.schedule));
  }
  return made;
}

}  // namespace

ScheduleSpec ScheduleSpec::Constant(const ConstantLrOptions& options) {
  return OnePhase(kConstantName, options, kConstant);
}
ScheduleSpec ScheduleSpec::Linear(const LinearLrOptions& options) {
  return OnePhase(kLinearName, options, kLinear);
}
ScheduleSpec ScheduleSpec::Step(const StepLrOptions& options) {
  return OnePhase(kStepName, options, kStep);
}
ScheduleSpec ScheduleSpec::Exponential(const ExponentialLrOptions& options) {
  return OnePhase(kExponentialName, options, kExponential);
}
ScheduleSpec ScheduleSpec::Polynomial(const PolynomialLrOptions& options) {
  return OnePhase(kPolynomialName, options, kPolynomial);
}
ScheduleSpec ScheduleSpec::Cosine(const CosineAnnealingLrOptions& options) {
  return OnePhase(kCosineName, options, kCosine);
}
ScheduleSpec ScheduleSpec::CosineWarmRestarts(
    const CosineWarmRestartsOptions& options) {
  return OnePhase(kCosineWarmRestartsName, options, kCosineWarmRestarts);
}

ScheduleSpec ScheduleSpec::Then(int64_t step, const ScheduleSpec& next) const {
  ScheduleSpec both;
  for (const Phase& phase : phases) {
    if (phase.first_step < step) both.phases.push_back(phase);
  }
  for (Phase phase : next.phases) {
    phase.first_step += step;
    both.phases.push_back(std::move(phase));
  }
  return both;
}

std::string ScheduleSpec::ToString() const {
  std::string text;
  for (const Phase& phase : phases) {
    if (!text.empty()) {
      absl::StrAppend(&text, ", from step ", phase.first_step, " ");
    }
    text += phase.schedule.ToString();
  }
  return text;
}

absl::StatusOr<LrSchedule> MakeLrSchedule(const ScheduleSpec& spec) {
  ASSIGN_OR_RETURN(std::vector<Made> made, MakePhases(spec));
  if (made.empty())
    return LrSchedule([](double base, int64_t) { return base; });
  if (made.size() == 1) return std::move(made[0].schedule);
  std::vector<LrSchedule> schedules;
  std::vector<int64_t> milestones;
  for (size_t i = 0; i < made.size(); ++i) {
    schedules.push_back(std::move(made[i].schedule));
    if (i > 0) milestones.push_back(spec.phases[i].first_step);
  }
  return SequentialLr(std::move(schedules), std::move(milestones));
}

absl::StatusOr<ScheduleSpec> NormalizeScheduleSpec(const ScheduleSpec& spec) {
  ASSIGN_OR_RETURN(std::vector<Made> made, MakePhases(spec));
  ScheduleSpec normal;
  for (size_t i = 0; i < made.size(); ++i) {
    normal.phases.push_back(
        {std::move(made[i].spec), spec.phases[i].first_step});
  }
  return normal;
}

}  // namespace hawser::optim
