#include "optim/option_scheduler.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "optim/lr_schedule.h"
#include "optim/optimizer.h"

namespace hawser::optim {

absl::StatusOr<std::unique_ptr<OptionScheduler>> OptionScheduler::Create(
    Optimizer* optimizer, LrSchedule schedule, std::string option) {
  auto scheduler = std::unique_ptr<OptionScheduler>(
      new OptionScheduler(optimizer, std::move(schedule), std::move(option)));
  for (size_t group = 0; group < optimizer->num_groups(); ++group) {
    const std::optional<double> base =
        optimizer->rule(group).Find(scheduler->option_);
    if (!base.has_value()) {
      return absl::InvalidArgumentError(absl::StrCat(
          optimizer->rule(group).name, " does not have an option \"",
          scheduler->option_, "\" to schedule"));
    }
    scheduler->bases_.push_back(*base);
  }
  RETURN_IF_ERROR(scheduler->GoTo(0));
  return scheduler;
}

absl::Status OptionScheduler::Step() { return GoTo(step_ + 1); }

absl::Status OptionScheduler::GoTo(int64_t step) {
  std::vector<double> values;
  for (const double base : bases_) {
    ASSIGN_OR_RETURN(values.emplace_back(), schedule_(base, step));
  }
  for (size_t group = 0; group < values.size(); ++group) {
    RETURN_IF_ERROR(optimizer_->SetOption(group, option_, values[group]));
  }
  step_ = step;
  return absl::OkStatus();
}

}  // namespace hawser::optim
