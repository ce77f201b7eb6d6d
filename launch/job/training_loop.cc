#include "launch/job/training_loop.h"

#include <cstdint>
#include <cstdio>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/status_macros.h"
#include "data/batch_sampler.h"
#include "data/distributed_sampler.h"
#include "telemetry/progress_line.h"

namespace hawser::launch {
namespace {

void Show(const telemetry::Progress& progress, int64_t log_every,
          telemetry::ProgressLine& line) {
  if (log_every == 0) {
    line.Update(progress);
  } else if (progress.step % log_every == 0) {
    std::fprintf(stderr, "step %lld loss %.9g\n",
                 static_cast<long long>(progress.step), progress.loss);
  }
}

// The batches of all epochs.
class Batches {
 public:
  Batches(data::DistributedSampler sampler, data::BatchSampler batches,
          int64_t num_epochs)
      : sampler_(std::move(sampler)),
        batches_(std::move(batches)),
        num_epochs_(num_epochs) {}

  int64_t steps_per_epoch() const {
    return batches_.NumBatches(sampler_.count());
  }
  // Of the batch that Next has returned, from 0.
  int64_t epoch() const { return epoch_; }

  // The samples of the next batch, valid until the next call; none at the end.
  std::span<const int64_t> Next() {
    if (epoch_ < 0 || ++step_ >= steps_per_epoch()) {
      if (++epoch_ >= num_epochs_ || steps_per_epoch() == 0) return {};
      step_ = 0;
      order_ = sampler_.Indices(epoch_);
    }
    return batches_.Batch(order_, step_);
  }

 private:
  const data::DistributedSampler sampler_;
  const data::BatchSampler batches_;
  const int64_t num_epochs_;
  int64_t epoch_ = -1;
  int64_t step_ = 0;
  std::vector<int64_t> order_;
};

}  // namespace

absl::Status RunTrainingLoop(const TrainingLoop& loop,
                             telemetry::ProgressLine* line) {
  ASSIGN_OR_RETURN(
      data::DistributedSampler sampler,
      data::DistributedSampler::Create({.dataset_count = loop.dataset_samples,
                                        .num_replicas = loop.num_trainers,
                                        .rank = loop.trainer,
                                        .seed = loop.seed}));
  ASSIGN_OR_RETURN(
      data::BatchSampler sizes,
      data::BatchSampler::Create(loop.batch_samples, /*drop_last=*/false));
  Batches batches(std::move(sampler), std::move(sizes), loop.num_epochs);
  telemetry::Progress progress{
      .num_epochs = loop.num_epochs,
      .num_steps = batches.steps_per_epoch() * loop.num_epochs};
  int64_t own_samples = 0;
  std::span<const int64_t> samples = batches.Next();
  if (!samples.empty()) RETURN_IF_ERROR(loop.load(samples));
  while (!samples.empty()) {
    progress.epoch = batches.epoch() + 1;
    double learning_rate = loop.learning_rate;
    if (loop.schedule != nullptr) {
      ASSIGN_OR_RETURN(learning_rate,
                       loop.schedule(learning_rate, batches.epoch()));
    }
    const auto count = static_cast<int64_t>(samples.size());
    ASSIGN_OR_RETURN(progress.loss, loop.step(learning_rate));
    samples = batches.Next();
    const absl::Status loaded =
        samples.empty() ? absl::OkStatus() : loop.load(samples);
    if (loop.wait != nullptr) RETURN_IF_ERROR(loop.wait());
    RETURN_IF_ERROR(loaded);
    ++progress.step;
    own_samples += count;
    progress.samples =
        loop.add_samples == nullptr ? own_samples : loop.add_samples(count);
    if (line != nullptr) Show(progress, loop.log_every, *line);
  }
  return absl::OkStatus();
}

}  // namespace hawser::launch
