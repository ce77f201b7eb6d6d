#include "optim/plateau_scheduler.h"

#include <algorithm>
#include <limits>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "optim/optimizer.h"

namespace hawser::optim {

absl::StatusOr<std::unique_ptr<PlateauScheduler>> PlateauScheduler::Create(
    Optimizer* optimizer, const PlateauOptions& options) {
  if (!(options.factor >= 0 && options.factor < 1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "PlateauScheduler: factor must be in [0, 1), not ", options.factor));
  }
  return std::unique_ptr<PlateauScheduler>(
      new PlateauScheduler(optimizer, options));
}

PlateauScheduler::PlateauScheduler(Optimizer* optimizer,
                                   const PlateauOptions& options)
    : optimizer_(optimizer), options_(options) {
  constexpr double kWorst = std::numeric_limits<double>::infinity();
  state_.best = options.maximize ? -kWorst : kWorst;
}

bool PlateauScheduler::IsBetter(double metric) const {
  const double threshold =
      options_.maximize ? options_.threshold : -options_.threshold;
  const double bar = options_.absolute_threshold
                         ? state_.best + threshold
                         : state_.best * (1 + threshold);
  return options_.maximize ? metric > bar : metric < bar;
}

absl::Status PlateauScheduler::Step(double metric) {
  if (IsBetter(metric)) {
    state_.best = metric;
    state_.bad_steps = 0;
  } else {
    ++state_.bad_steps;
  }
  if (state_.cooldown_left > 0) {
    --state_.cooldown_left;
    state_.bad_steps = 0;
  }
  if (state_.bad_steps <= options_.patience) return absl::OkStatus();
  state_.cooldown_left = options_.cooldown;
  state_.bad_steps = 0;
  return ReduceLearningRates();
}

absl::Status PlateauScheduler::ReduceLearningRates() {
  for (size_t group = 0; group < optimizer_->num_groups(); ++group) {
    const double present = optimizer_->learning_rate(group);
    const double reduced = std::max(present * options_.factor, options_.min_lr);
    if (present - reduced <= options_.eps) continue;
    RETURN_IF_ERROR(optimizer_->SetOption(group, "lr", reduced));
  }
  return absl::OkStatus();
}

}  // namespace hawser::optim
