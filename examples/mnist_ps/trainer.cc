#include "examples/mnist_ps/trainer.h"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "async/clock.h"
#include "async/future.h"
#include "async/status_macros.h"
#include "data/mnist.h"
#include "examples/mnist_ps/digits.h"
#include "examples/mnist_ps/functions.h"
#include "examples/mnist_ps/job_member.h"
#include "examples/mnist_ps/model.h"
#include "examples/mnist_ps/remote_learner.h"
#include "examples/mnist_ps/sample_counts.h"
#include "examples/mnist_ps/saved_model.h"
#include "examples/mnist_ps/training_loop.h"
#include "rpc/functions/function_registry.h"
#include "telemetry/progress_line.h"

namespace hawser::examples::mnist_ps {
namespace {

// Reports to trainer 0 how many samples another trainer has processed, at most
// every 100 ms, one report at a time.
class SampleReporter {
 public:
  SampleReporter(JobMember& member, int trainer)
      : member_(member), trainer_(trainer) {}

  // Adds the samples of a step.
  void Add(int64_t samples) {
    samples_ += samples;
    const auto now = std::chrono::steady_clock::now();
    if (now < next_ || (report_.has_value() && !report_->ready())) return;
    next_ = now + std::chrono::milliseconds(100);
    // A lost report is made up for by the next one.
    report_ = member_.agent().Async(TrainerName(0), kReportSamples,
                                    int64_t{trainer_}, samples_);
  }

  // Reports that the trainer has finished.
  absl::Status Finish() {
    return member_.agent().Sync(TrainerName(0), kTrainerDone, int64_t{trainer_},
                                samples_);
  }

 private:
  JobMember& member_;
  const int trainer_;
  int64_t samples_ = 0;
  std::chrono::steady_clock::time_point next_{};
  std::optional<async::Future<void>> report_;
};

// Waits for `future` or for the end of the job.
template <class T>
absl::StatusOr<T> WaitWithin(JobMonitor& monitor, async::Future<T> future) {
  monitor.ended().OnReady(
      [future](const absl::Status&) { (void)future.Cancel(); });
  absl::StatusOr<T> result = std::move(future).Wait();
  RETURN_IF_ERROR(monitor.Check());
  return result;
}

// The work of trainer 0. Sets `saved` to the outcome of saving the model, whose
// failure does not disturb the other processes.
absl::Status Lead(JobMember& member, const data::DigitSplit& digits,
                  const Options& options, SampleCounts& counts,
                  StopSignals& stop, absl::Status& saved) {
  ASSIGN_OR_RETURN(const auto learner,
                   RemoteLearner::Create(member, options, /*create=*/true));
  async::RealClock clock;
  telemetry::ProgressLine line(stderr, &clock,
                               telemetry::ProgressLine::OptionsFor(stderr));
  stop.SetLine(&line);
  const absl::Cleanup unset = [&stop] { stop.SetLine(nullptr); };
  int64_t own_samples = 0;
  const auto count = [&](int64_t samples) {
    own_samples += samples;
    counts.Report(options.index, own_samples).IgnoreError();
    return counts.total();
  };
  RETURN_IF_ERROR(Train(*learner, digits.train, options, options.index,
                        options.num_trainers, count, &line));
  line.Finish();
  RETURN_IF_ERROR(counts.Finish(options.index, own_samples));
  ASSIGN_OR_RETURN(const int64_t samples,
                   WaitWithin(member.monitor(), counts.all_finished()));
  const double samples_per_second = line.SamplesPerSecond(samples);
  ASSIGN_OR_RETURN(const std::vector<Tensor> parameters, learner->Parameters());
  saved = SaveModel(options.save_path, parameters);
  ASSIGN_OR_RETURN(const Evaluation evaluation,
                   Evaluate(parameters, digits.test));
  PrintResult(evaluation, samples_per_second);
  return member.EndJobEverywhere();
}

// The work of the other trainers.
absl::Status Follow(JobMember& member, const data::DigitSplit& digits,
                    const Options& options) {
  {
    ASSIGN_OR_RETURN(const auto learner,
                     RemoteLearner::Create(member, options, /*create=*/false));
    SampleReporter reporter(member, options.index);
    const auto count = [&reporter](int64_t samples) {
      reporter.Add(samples);
      return int64_t{0};  // Not shown.
    };
    RETURN_IF_ERROR(Train(*learner, digits.train, options, options.index,
                          options.num_trainers, count, /*line=*/nullptr));
    RETURN_IF_ERROR(reporter.Finish());
  }
  return member.monitor().ended().Wait();
}

}  // namespace

absl::Status RunTrainer(const Options& options, StopSignals& stop) {
  const bool leads = options.index == 0;
  if (leads) RETURN_IF_ERROR(CheckSavePath(options.save_path));
  ASSIGN_OR_RETURN(const data::DigitSplit digits, LoadDigits(options));
  SampleCounts counts(options.num_trainers);
  rpc::FunctionRegistry registry;
  if (leads) {
    RETURN_IF_ERROR(registry.Register(
        kReportSamples, [&counts](int64_t trainer, int64_t samples) {
          return counts.Report(trainer, samples);
        }));
    RETURN_IF_ERROR(registry.Register(
        kTrainerDone, [&counts](int64_t trainer, int64_t samples) {
          return counts.Finish(trainer, samples);
        }));
  }
  ASSIGN_OR_RETURN(const auto member, JobMember::Join(options, registry));
  absl::Status saved;
  RETURN_IF_ERROR(
      member->Leave(leads ? Lead(*member, digits, options, counts, stop, saved)
                          : Follow(*member, digits, options)));
  return saved;
}

}  // namespace hawser::examples::mnist_ps
