// Runner of registered functions on the executors that they ask for.

#ifndef HAWSER_RPC_AGENT_INBOUND_FUNCTION_RUNNER_H_
#define HAWSER_RPC_AGENT_INBOUND_FUNCTION_RUNNER_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/executor.h"
#include "async/future.h"
#include "async/mutex.h"
#include "async/run_time.h"
#include "async/serial_queue.h"
#include "rpc/agent/state/agent_state.h"
#include "rpc/functions/erased_value.h"
#include "rpc/functions/run_on.h"
#include "rpc/wire/decoder.h"

namespace hawser::rpc {

class RegisteredFunction;

// Thread-safe.
class FunctionRunner {
 public:
  explicit FunctionRunner(std::shared_ptr<AgentState> state)
      : state_(std::move(state)) {}
  FunctionRunner(const FunctionRunner&) = delete;
  FunctionRunner& operator=(const FunctionRunner&) = delete;

  // The executor of functions and methods with that option: the agent's, or one
  // serial queue per name.
  async::Executor& ExecutorOf(const RunOn& run_on);

  // Work that may run on the executor of `run_on`, or in the calling thread.
  struct Work {
    const RunOn& run_on;
    // Of earlier runs. Must live until the agent stops.
    async::RunTime& run_time;
    size_t request_bytes = 0;
    // Whether more messages wait for the calling thread.
    bool more_waiting = false;
  };
  // Runs `action` on ExecutorOf(work.run_on), unless the agent stops before. If
  // that is the agent's pool, and the caller of the function would wait longer
  // for a hand-over to another thread than the action takes, runs it in the
  // calling thread instead:
  //   - a short action. If it takes long against expectation, another thread
  //     replaces the calling one;
  //   - a longer one, one at a time, which another thread replaces from its
  //     beginning.
  template <class Action>
  void RunOrPost(const Work& work, Action action) {
    if (work.run_on.kind() == RunOn::Kind::kQueue) {
      state_->Post(ExecutorOf(work.run_on), std::move(action));
      return;
    }
    const Place place = PlaceOf(work);
    if (place != Place::kPool) {
      RunHere(place, work.run_time, action);
    } else {
      state_->Post(state_->executor(), [&run_time = work.run_time,
                                        action = std::move(action)]() mutable {
        Measure(run_time, action);
      });
    }
  }

  // Runs `action` with OK once `prerequisites` have completed: in this thread
  // if there are none, otherwise on ExecutorOf(run_on). If one fails, runs it
  // with the first error, in the thread that completed the last one. Drops it
  // if the agent stops.
  void RunAfter(std::vector<async::Future<void>> prerequisites,
                const RunOn& run_on,
                absl::AnyInvocable<void(absl::Status) &&> action);

  // ServiceHost::Invoke.
  async::Future<ErasedValue> Invoke(const RegisteredFunction& function,
                                    Decoder& arguments);

  // OK if a function may run, and so wait for other calls, in this thread.
  // kResourceExhausted if the pool has few threads left: a function that waits
  // for a call back to this worker would then wait forever.
  static absl::Status CheckMayBlock();

 private:
  enum class Place { kPool, kHere, kHereReplaced };
  Place PlaceOf(const Work& work);
  // Not for kPool.
  void RunHere(Place place, async::RunTime& run_time,
               absl::FunctionRef<void()> action);
  static void Measure(async::RunTime& run_time,
                      absl::FunctionRef<void()> action);

  const std::shared_ptr<AgentState> state_;
  // Whether an action runs with kHereReplaced.
  std::atomic<bool> replaced_{false};
  async::Mutex mutex_;
  absl::flat_hash_map<std::string, std::unique_ptr<async::SerialQueue>> queues_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_AGENT_INBOUND_FUNCTION_RUNNER_H_
