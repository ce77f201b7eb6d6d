#ifndef HAWSER_OPTIM_OPTION_SCHEDULER_H_
#define HAWSER_OPTIM_OPTION_SCHEDULER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "optim/lr_schedule.h"
#include "optim/optimizer.h"

namespace hawser::optim {

// A scheduler that sets an option of an optimizer's groups, by default the
// learning rate, in each step. The base of a group's schedule is the value of
// the option when the scheduler is created.
//
// The optimizer must outlive the scheduler, and groups must not be added to it
// later. Thread-compatible.
class OptionScheduler {
 public:
  // Sets the values of step 0.
  //
  // kInvalidArgument: the rule does not have the option or rejects its value.
  // Also returns the errors of the schedule.
  static absl::StatusOr<std::unique_ptr<OptionScheduler>> Create(
      Optimizer* optimizer, LrSchedule schedule, std::string option = "lr");

  OptionScheduler(const OptionScheduler&) = delete;
  OptionScheduler& operator=(const OptionScheduler&) = delete;

  // Advances by one step. After an error the step is unchanged.
  absl::Status Step();

  // Jumps to step `step`, for example that of a checkpoint.
  absl::Status GoTo(int64_t step);

  int64_t step() const { return step_; }

 private:
  OptionScheduler(Optimizer* optimizer, LrSchedule schedule, std::string option)
      : optimizer_(optimizer),
        schedule_(std::move(schedule)),
        option_(std::move(option)) {}

  Optimizer* const optimizer_;
  const LrSchedule schedule_;
  const std::string option_;
  std::vector<double> bases_;
  int64_t step_ = 0;
};

}  // namespace hawser::optim

#endif  // HAWSER_OPTIM_OPTION_SCHEDULER_H_
