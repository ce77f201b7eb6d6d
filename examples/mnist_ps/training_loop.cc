#include "examples/mnist_ps/training_loop.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <span>
#include <vector>

#include "async/status_macros.h"
#include "data/distributed_sampler.h"
#include "nlohmann/json.hpp"
#include "optim/lr_schedule.h"

namespace hawser::examples::mnist_ps {
namespace {

// On `line`, or every `log_every` steps as a line of its own.
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

absl::Status Train(Learner& learner, const data::LabeledImages& train,
                   const Options& options, int trainer, int num_trainers,
                   absl::FunctionRef<int64_t(int64_t)> count,
                   telemetry::ProgressLine* line) {
  ASSIGN_OR_RETURN(
      const data::DistributedSampler sampler,
      data::DistributedSampler::Create({.dataset_count = train.count(),
                                        .num_replicas = num_trainers,
                                        .rank = trainer,
                                        .seed = options.seed}));
  const int64_t batch_samples = options.batch_samples;
  const int64_t steps_per_epoch =
      (sampler.count() + batch_samples - 1) / batch_samples;
  telemetry::Progress progress{
      .num_epochs = options.num_epochs,
      .num_steps = steps_per_epoch * options.num_epochs};
  ASSIGN_OR_RETURN(const optim::LrSchedule schedule,
                   optim::CosineAnnealingLr({.period = options.num_epochs}));
  for (int64_t epoch = 0; epoch < options.num_epochs; ++epoch) {
    progress.epoch = epoch + 1;
    ASSIGN_OR_RETURN(const double learning_rate,
                     schedule(options.learning_rate, epoch));
    RETURN_IF_ERROR(learner.SetLearningRate(learning_rate));
    const std::vector<int64_t> order = sampler.Indices(epoch);
    for (int64_t begin = 0; begin < sampler.count(); begin += batch_samples) {
      const int64_t samples = std::min(batch_samples, sampler.count() - begin);
      ASSIGN_OR_RETURN(
          const data::Batch batch,
          data::GatherBatch(
              train, std::span(order).subspan(static_cast<size_t>(begin),
                                              static_cast<size_t>(samples))));
      ASSIGN_OR_RETURN(progress.loss, learner.Step(batch));
      ++progress.step;
      progress.samples = count(samples);
      if (line != nullptr) Show(progress, options.log_every, *line);
    }
  }
  return absl::OkStatus();
}

void PrintResult(const Evaluation& evaluation, double samples_per_second) {
  nlohmann::ordered_json result;
  result["example"] = "mnist_ps";
  result["test_accuracy"] = evaluation.accuracy;
  result["final_loss"] = std::round(evaluation.loss * 1e6) / 1e6;
  result["samples_per_s"] = std::llround(samples_per_second);
  std::printf("%s\n", result.dump().c_str());
  std::fflush(stdout);
}

}  // namespace hawser::examples::mnist_ps
