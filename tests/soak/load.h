// The work of a trainer of the soak job.

#ifndef HAWSER_TESTS_SOAK_LOAD_H_
#define HAWSER_TESTS_SOAK_LOAD_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "async/mutex.h"
#include "async/random_source.h"
#include "dist_optim/distributed_optimizer.h"
#include "rpc/agent/agent.h"
#include "rref/rref.h"
#include "tensor/tensor.h"

namespace hawser::tests {

// Runs random steps in a thread of its own, each a call, a reference that
// travels, a training step, or a stream, with random other workers of the job.
// Every result is compared with the expected one.
//
// A step may fail because a worker has died: its error then has one of the
// codes kUnavailable, kFailedPrecondition, kNotFound or kAborted, and is
// reported by `on_failed`. Any other error, and a wrong result, is reported by
// `on_wrong`. Both run in the thread.
class Load {
 public:
  using Reporter = std::function<void(const std::string& text)>;

  // `agent` must outlive this object. `interval` is the time from one step to
  // the next.
  Load(rpc::Agent* agent, uint64_t seed, absl::Duration interval,
       Reporter on_failed, Reporter on_wrong);
  // Ends the current step, which takes as long as its calls.
  ~Load();
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  // Ends after the current step, and drops all references.
  void Pause();
  void Resume();

  // Numbers of steps that succeeded and failed.
  int64_t num_steps() const { return num_steps_; }
  int64_t num_failed() const { return num_failed_; }

 private:
  // Two parameters on two workers, which only this trainer changes.
  struct Model {
    rref::RRef<Tensor> first;
    rref::RRef<Tensor> second;
    std::unique_ptr<dist_optim::DistributedOptimizer> optimizer;
    double expected_first = 0;
    double expected_second = 0;
  };

  void Run();
  // Waits until the next step is due; false if the object is being destroyed.
  bool AwaitNext();
  absl::Status Step();
  absl::Status Call();
  absl::Status ShareReference();
  absl::Status Train();
  absl::Status TrainModel();
  absl::Status CreateModel();
  absl::Status ReadStream();
  // Name of a random member other than this one.
  std::string AnyPeer();

  rpc::Agent& agent_;
  const absl::Duration interval_;
  const Reporter on_failed_;
  const Reporter on_wrong_;
  async::RandomSource random_;
  std::optional<Model> model_;
  std::atomic<int64_t> num_steps_{0};
  std::atomic<int64_t> num_failed_{0};
  async::Mutex mutex_;
  async::CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool paused_ ABSL_GUARDED_BY(mutex_) = false;
  // Whether the thread waits, and holds nothing.
  bool idle_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace hawser::tests

#endif  // HAWSER_TESTS_SOAK_LOAD_H_
