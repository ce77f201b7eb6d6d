#include "rpc/agent/inbound/function_runner.h"

#include <utility>

#include "async/join.h"
#include "async/thread_pool.h"

namespace hawser::rpc {

absl::Status FunctionRunner::CheckMayBlock() {
  if (!async::ThreadPool::IsNearlyExhausted()) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      "so many calls wait here for others that no thread is left for one more: "
      "they call each other without end, or AgentOptions::max_threads is too "
      "low");
}

async::Executor& FunctionRunner::ExecutorOf(const RunOn& run_on) {
  if (run_on.kind() != RunOn::Kind::kQueue) return state_->executor();
  async::MutexLock lock(&mutex_);
  std::unique_ptr<async::SerialQueue>& queue = queues_[run_on.queue()];
  if (queue == nullptr) {
    queue = std::make_unique<async::SerialQueue>(&state_->executor());
  }
  return *queue;
}

void FunctionRunner::RunAfter(
    std::vector<async::Future<void>> prerequisites, const RunOn& run_on,
    bool here, absl::AnyInvocable<void(absl::Status) &&> action) {
  if (prerequisites.empty() && here) {
    std::move(action)(absl::OkStatus());
    return;
  }
  async::Executor& executor = ExecutorOf(run_on);
  if (prerequisites.empty()) {
    state_->Post(executor, [action = std::move(action)]() mutable {
      std::move(action)(absl::OkStatus());
    });
    return;
  }
  async::JoinAll(std::move(prerequisites))
      .OnReady([state = state_, &executor, action = std::move(action)](
                   const absl::Status& status) mutable {
        Gate::Entry entry(&state->gate());
        if (!entry) return;
        if (!status.ok()) {
          std::move(action)(status);
          return;
        }
        state->Post(executor, [action = std::move(action)]() mutable {
          std::move(action)(absl::OkStatus());
        });
      });
}

async::Future<ErasedValue> FunctionRunner::Invoke(
    const RegisteredFunction& function, Decoder& arguments) {
  absl::StatusOr<RegisteredFunction::Invocation> invocation =
      function.Prepare(arguments);
  if (!invocation.ok()) {
    return async::MakeReadyFuture<ErasedValue>(invocation.status());
  }
  async::Promise<ErasedValue> promise;
  async::Future<ErasedValue> future = promise.future();
  const RunOn& run_on = function.options().run_on;
  const bool here = run_on.kind() == RunOn::Kind::kInline &&
                    !async::ThreadPool::IsNearlyExhausted();
  RunAfter(
      arguments.TakePrerequisites(), run_on, here,
      [invocation = *std::move(invocation),
       promise = std::move(promise)](absl::Status status) mutable {
        if (status.ok()) status = CheckMayBlock();
        if (!status.ok()) {
          promise.Set(std::move(status));
          return;
        }
        std::move(invocation)([promise = std::move(promise)](
                                  absl::StatusOr<ErasedValue> result) mutable {
          promise.Set(std::move(result));
        });
      });
  return future;
}

}  // namespace hawser::rpc
