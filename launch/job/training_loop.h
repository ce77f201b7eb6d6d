// The loop over epochs and batches of a trainer.

#ifndef HAWSER_LAUNCH_JOB_TRAINING_LOOP_H_
#define HAWSER_LAUNCH_JOB_TRAINING_LOOP_H_

#include <cstdint>
#include <functional>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "optim/lr_schedule.h"
#include "telemetry/progress_line.h"

namespace hawser::launch {

struct TrainingLoop {
  // Size of the data set.
  int64_t dataset_samples = 0;
  int64_t num_epochs = 1;
  int64_t batch_samples = 1;
  // Of the order of the samples.
  uint64_t seed = 0;
  // This trainer among those that share the data set, each with a part of equal
  // size.
  int trainer = 0;
  int num_trainers = 1;
  double learning_rate = 0;
  // The learning rate by epoch. Null: constant.
  optim::LrSchedule schedule = nullptr;
  // Loads the batch of samples with these indices, for the next step. Called
  // while the update of the step before is under way.
  std::function<absl::Status(std::span<const int64_t> samples)> load = nullptr;
  // Trains one step on the batch that was loaded last; returns the loss. May
  // leave its update under way.
  std::function<absl::StatusOr<double>(double learning_rate)> step = nullptr;
  // Waits for the update of the last step. Null: steps leave none under way.
  std::function<absl::Status()> wait = nullptr;
  // Called after each update with its number of samples. Returns how many all
  // trainers have processed so far, which is shown: JobMember::AddSamples.
  // Null: this is the only trainer.
  std::function<int64_t(int64_t samples)> add_samples = nullptr;
  // Print the loss of every nth step with all digits on standard error, instead
  // of the progress line. 0: never.
  int64_t log_every = 0;
};

// Trains all epochs, in each of which the samples have another order, on the
// batches of data::DistributedSampler and data::BatchSampler; the last batch of
// an epoch may be smaller. Shows the progress on `line`; null: nothing. Errors
// of the callbacks, and kInvalidArgument: the trainer is not one of
// num_trainers, or batch_samples is below 1.
absl::Status RunTrainingLoop(const TrainingLoop& loop,
                             telemetry::ProgressLine* line);

}  // namespace hawser::launch

#endif  // HAWSER_LAUNCH_JOB_TRAINING_LOOP_H_
