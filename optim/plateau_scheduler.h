#ifndef HAWSER_OPTIM_PLATEAU_SCHEDULER_H_
#define HAWSER_OPTIM_PLATEAU_SCHEDULER_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "optim/optimizer.h"

namespace hawser::optim {

struct PlateauOptions {
  // True if a larger metric is better.
  bool maximize = false;
  double factor = 0.1;  // Multiplies the learning rate; below 1.
  // Steps without improvement before a reduction.
  int64_t patience = 10;
  // Minimal improvement: relative to the best value, or absolute with
  // `absolute_threshold`.
  double threshold = 1e-4;
  bool absolute_threshold = false;
  // Steps after a reduction that do not count towards `patience`.
  int64_t cooldown = 0;
  double min_lr = 0;
  // Reductions by this amount or less are skipped.
  double eps = 1e-8;
};

// A scheduler that reduces the learning rates of all groups when a metric has
// stopped improving, like PyTorch's ReduceLROnPlateau.
//
// The optimizer must outlive the scheduler. Thread-compatible.
class PlateauScheduler {
 public:
  // The state that a later run needs to resume.
  struct State {
    double best;
    int64_t bad_steps = 0;
    int64_t cooldown_left = 0;
  };

  // kInvalidArgument: factor is not in [0, 1).
  static absl::StatusOr<std::unique_ptr<PlateauScheduler>> Create(
      Optimizer* optimizer, const PlateauOptions& options);

  PlateauScheduler(const PlateauScheduler&) = delete;
  PlateauScheduler& operator=(const PlateauScheduler&) = delete;

  // Records the metric of the next step. NaN is not an improvement.
  absl::Status Step(double metric);

  const State& state() const { return state_; }
  void set_state(const State& state) { state_ = state; }

 private:
  PlateauScheduler(Optimizer* optimizer, const PlateauOptions& options);

  bool IsBetter(double metric) const;
  absl::Status ReduceLearningRates();

  Optimizer* const optimizer_;
  const PlateauOptions options_;
  State state_;
};

}  // namespace hawser::optim

#endif  // HAWSER_OPTIM_PLATEAU_SCHEDULER_H_
