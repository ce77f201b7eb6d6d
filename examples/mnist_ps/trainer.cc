#include "examples/mnist_ps/trainer.h"

#include <chrono>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "async/future.h"
#include "async/mutex.h"
#include "async/status_macros.h"
#include "data/mnist.h"
#include "examples/mnist_ps/digits.h"
#include "examples/mnist_ps/functions.h"
#include "examples/mnist_ps/job_member.h"
#include "examples/mnist_ps/model.h"
#include "examples/mnist_ps/remote_learner.h"
#include "examples/mnist_ps/training_loop.h"
#include "rpc/functions/function_registry.h"

namespace hawser::examples::mnist_ps {
namespace {

// Trainer 0's counter of trainers that have finished. Thread-safe.
class DoneCounter {
 public:
  explicit DoneCounter(int num_trainers) : missing_(num_trainers) {}

  void Add(int64_t samples) {
    bool last = false;
    int64_t total = 0;
    {
      const async::MutexLock lock(&mutex_);
      total = samples_ += samples;
      last = --missing_ == 0;
    }
    if (last) all_done_.Set(total);
  }

  // Completes when all trainers have finished, with their total number of
  // samples.
  async::Future<int64_t> all_done() const { return all_done_.future(); }

 private:
  async::Mutex mutex_;
  int missing_ ABSL_GUARDED_BY(mutex_);
  int64_t samples_ ABSL_GUARDED_BY(mutex_) = 0;
  async::Promise<int64_t> all_done_;
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

absl::Status TestAndReport(RemoteLearner& learner,
                           const data::LabeledImages& test,
                           const Options& options, double final_loss,
                           double samples_per_second) {
  ASSIGN_OR_RETURN(const std::vector<Tensor> parameters, learner.Parameters());
  ASSIGN_OR_RETURN(const double accuracy, Accuracy(parameters, test));
  if (!options.save_path.empty()) {
    RETURN_IF_ERROR(SaveParameters(options.save_path, parameters));
  }
  PrintResult(accuracy, final_loss, samples_per_second);
  return absl::OkStatus();
}

// The work of trainer 0.
absl::Status Lead(JobMember& member, const data::DigitSplit& digits,
                  const Options& options, DoneCounter& done) {
  ASSIGN_OR_RETURN(const auto learner,
                   RemoteLearner::Create(member, options, /*create=*/true));
  const auto start = std::chrono::steady_clock::now();
  ASSIGN_OR_RETURN(const TrainingSummary summary,
                   Train(*learner, digits.train, options, options.index,
                         options.num_trainers, /*show_progress=*/true));
  done.Add(summary.samples);
  ASSIGN_OR_RETURN(const int64_t samples,
                   WaitWithin(member.monitor(), done.all_done()));
  const std::chrono::duration<double> elapsed =
      std::chrono::steady_clock::now() - start;
  RETURN_IF_ERROR(
      TestAndReport(*learner, digits.test, options, summary.final_loss,
                    static_cast<double>(samples) / elapsed.count()));
  return member.EndJobEverywhere();
}

// The work of the other trainers.
absl::Status Follow(JobMember& member, const data::DigitSplit& digits,
                    const Options& options) {
  {
    ASSIGN_OR_RETURN(const auto learner,
                     RemoteLearner::Create(member, options, /*create=*/false));
    ASSIGN_OR_RETURN(const TrainingSummary summary,
                     Train(*learner, digits.train, options, options.index,
                           options.num_trainers, /*show_progress=*/false));
    RETURN_IF_ERROR(member.agent().Sync(
        TrainerName(0), kTrainerDone, int64_t{options.index}, summary.samples));
  }
  return member.monitor().ended().Wait();
}

}  // namespace

absl::Status RunTrainer(const Options& options) {
  ASSIGN_OR_RETURN(const data::DigitSplit digits, LoadDigits(options));
  DoneCounter done(options.num_trainers);
  rpc::FunctionRegistry registry;
  const bool leads = options.index == 0;
  if (leads) {
    RETURN_IF_ERROR(registry.Register(
        kTrainerDone,
        [&done](int64_t, int64_t samples) { done.Add(samples); }));
  }
  ASSIGN_OR_RETURN(const auto member, JobMember::Join(options, registry));
  return member->Leave(leads ? Lead(*member, digits, options, done)
                             : Follow(*member, digits, options));
}

}  // namespace hawser::examples::mnist_ps
