#include "examples/mnist_ps/training_loop.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>

#include "async/clock.h"
#include "async/status_macros.h"
#include "data/distributed_sampler.h"
#include "nlohmann/json.hpp"
#include "optim/lr_schedule.h"
#include "telemetry/progress_line.h"

namespace hawser::examples::mnist_ps {

absl::StatusOr<TrainingSummary> Train(Learner& learner,
                                      const data::LabeledImages& train,
                                      const Options& options, int trainer,
                                      int num_trainers, bool show_progress) {
  ASSIGN_OR_RETURN(
      const data::DistributedSampler sampler,
      data::DistributedSampler::Create({.dataset_count = train.count(),
                                        .num_replicas = num_trainers,
                                        .rank = trainer,
                                        .seed = options.seed}));
  const int64_t batch_samples = options.batch_samples;
  const int64_t steps_per_epoch =
      (sampler.count() + batch_samples - 1) / batch_samples;
  async::RealClock clock;
  std::optional<telemetry::ProgressLine> line;
  if (show_progress) {
    line.emplace(stderr, &clock, telemetry::ProgressLine::OptionsFor(stderr));
  }
  telemetry::Progress progress{
      .num_epochs = options.num_epochs,
      .num_steps = steps_per_epoch * options.num_epochs};
  ASSIGN_OR_RETURN(const optim::LrSchedule schedule,
                   optim::CosineAnnealingLr({.period = options.num_epochs}));
  TrainingSummary summary;
  for (int64_t epoch = 0; epoch < options.num_epochs; ++epoch) {
    ASSIGN_OR_RETURN(const double learning_rate,
                     schedule(options.learning_rate, epoch));
    RETURN_IF_ERROR(learner.SetLearningRate(learning_rate));
    const std::vector<int64_t> order = sampler.Indices(epoch);
    double loss_sum = 0;
    for (int64_t begin = 0; begin < sampler.count(); begin += batch_samples) {
      const int64_t count = std::min(batch_samples, sampler.count() - begin);
      ASSIGN_OR_RETURN(
          const data::Batch batch,
          data::GatherBatch(
              train, std::span(order).subspan(static_cast<size_t>(begin),
                                              static_cast<size_t>(count))));
      ASSIGN_OR_RETURN(const double loss, learner.Step(batch));
      loss_sum += loss;
      summary.samples += count;
      ++progress.step;
      if (show_progress && options.log_every > 0 &&
          progress.step % options.log_every == 0) {
        std::fprintf(stderr, "step %lld loss %.9g\n",
                     static_cast<long long>(progress.step), loss);
      }
      if (line.has_value()) {
        progress.epoch = epoch + 1;
        progress.loss = loss;
        progress.samples = summary.samples;
        line->Update(progress);
      }
    }
    summary.final_loss = loss_sum / static_cast<double>(steps_per_epoch);
  }
  if (line.has_value()) line->Finish();
  return summary;
}

void PrintResult(double test_accuracy, double final_loss,
                 double samples_per_second) {
  nlohmann::ordered_json result;
  result["example"] = "mnist_ps";
  result["test_accuracy"] = test_accuracy;
  result["final_loss"] = final_loss;
  result["samples_per_s"] = samples_per_second;
  std::printf("%s\n", result.dump().c_str());
  std::fflush(stdout);
}

}  // namespace hawser::examples::mnist_ps
