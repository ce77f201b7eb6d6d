#include "launch/job/training_loop.h"

#include <cstdint>
#include <cstdio>
#include <span>
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

}  // namespace

absl::Status RunTrainingLoop(const TrainingLoop& loop,
                             telemetry::ProgressLine* line) {
  ASSIGN_OR_RETURN(
      const data::DistributedSampler sampler,
      data::DistributedSampler::Create({.dataset_count = loop.dataset_samples,
                                        .num_replicas = loop.num_trainers,
                                        .rank = loop.trainer,
                                        .seed = loop.seed}));
  ASSIGN_OR_RETURN(
      const data::BatchSampler batches,
      data::BatchSampler::Create(loop.batch_samples, /*drop_last=*/false));
  const int64_t steps_per_epoch = batches.NumBatches(sampler.count());
  telemetry::Progress progress{.num_epochs = loop.num_epochs,
                               .num_steps = steps_per_epoch * loop.num_epochs};
  int64_t own_samples = 0;
  for (int64_t epoch = 0; epoch < loop.num_epochs; ++epoch) {
    progress.epoch = epoch + 1;
    double learning_rate = loop.learning_rate;
    if (loop.schedule != nullptr) {
      ASSIGN_OR_RETURN(learning_rate, loop.schedule(learning_rate, epoch));
    }
    const std::vector<int64_t> order = sampler.Indices(epoch);
    for (int64_t step = 0; step < steps_per_epoch; ++step) {
      const std::span<const int64_t> samples = batches.Batch(order, step);
      const auto count = static_cast<int64_t>(samples.size());
      ASSIGN_OR_RETURN(progress.loss, loop.step(samples, learning_rate));
      ++progress.step;
      own_samples += count;
      progress.samples =
          loop.add_samples == nullptr ? own_samples : loop.add_samples(count);
      if (line != nullptr) Show(progress, loop.log_every, *line);
    }
  }
  return absl::OkStatus();
}

}  // namespace hawser::launch
