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

// Sets an option of an optimizer's groups, by default the learning rate, from a
// schedule, one step at a time. A group's value when the scheduler is made is
// its schedule's base.
//
// The optimizer must outlive the scheduler and get no further groups.
// Thread-compatible.
class OptionScheduler {
 public:
  // Sets the values of step 0.
  //
  // kInvalidArgument: the rule has no such option or it cannot be so; or the
  // schedule's own error.
  static absl::StatusOr<std::unique_ptr<OptionScheduler>> Create(
      Optimizer* optimizer, LrSchedule schedule, std::string option = "lr");

  OptionScheduler(const OptionScheduler&) = delete;
  OptionScheduler& operator=(const OptionScheduler&) = delete;

  // Goes on to the next step. After an error it is at the step before.
  absl::Status Step();

  // Goes to step `step`, for instance that of a checkpoint.
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
