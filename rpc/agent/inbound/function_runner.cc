#include "rpc/agent/inbound/function_runner.h"

#include <chrono>
#include <optional>
#include <utility>

#include "async/busy_timer.h"
#include "async/join.h"
#include "async/long_run_guard.h"
#include "async/thread_pool.h"
#include "rpc/functions/function_registry.h"

namespace hawser::rpc {
namespace {

// A hand-over to a thread that sleeps takes about 30 us, of which the thread
// that hands over spends about 5.
//
// Work that takes less stays in the thread, also if other messages wait there.
constexpr std::chrono::microseconds kShortRun{15};
// Longer work stays if none wait. Where all cores are busy, the thread that
// takes over interrupts this one: a pull of 1,000 rows, which takes 50 us, took
// 85.
constexpr std::chrono::microseconds kLongestRunHere{80};
// Copying more bytes takes longer.
constexpr size_t kMaxBytesHere = size_t{256} << 10;
// Of work whose thread is replaced. Longer work gains less by it.
constexpr std::chrono::microseconds kLongestReplacedRun{1000};
constexpr size_t kMaxBytesReplaced = size_t{4} << 20;

}  // namespace

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

FunctionRunner::Place FunctionRunner::PlaceOf(const Work& work) {
  const std::optional<std::chrono::nanoseconds> expected =
      work.run_time.expected();
  if (!expected.has_value() || *expected > kLongestReplacedRun ||
      work.request_bytes > kMaxBytesReplaced || state_->pool() == nullptr ||
      !AgentState::InsideScope::IsInside(state_.get()) ||
      !async::LongRunGuard::CanReplaceThisThread() ||
      async::ThreadPool::IsNearlyExhausted()) {
    return Place::kPool;
  }
  if (*expected <= (work.more_waiting ? kShortRun : kLongestRunHere) &&
      work.request_bytes <= kMaxBytesHere) {
    return Place::kHere;
  }
  if (work.more_waiting || replaced_.exchange(true)) return Place::kPool;
  return Place::kHereReplaced;
}

void FunctionRunner::RunHere(Place place, async::RunTime& run_time,
                             absl::FunctionRef<void()> action) {
  std::optional<async::LongRunGuard> guard;
  // The pool's threads may take long.
  if (!state_->pool()->RunsThisThread()) guard.emplace(&run_time);
  if (place == Place::kHereReplaced && guard.has_value()) guard->Replace();
  Measure(run_time, action);
  if (place == Place::kHereReplaced) replaced_.store(false);
}

void FunctionRunner::Measure(async::RunTime& run_time,
                             absl::FunctionRef<void()> action) {
  const async::BusyTimer timer;
  action();
  run_time.Record(timer.Elapsed());
}

void FunctionRunner::RunAfter(
    std::vector<async::Future<void>> prerequisites, const RunOn& run_on,
    absl::AnyInvocable<void(absl::Status) &&> action) {
  if (prerequisites.empty()) {
    std::move(action)(absl::OkStatus());
    return;
  }
  async::Executor& executor = ExecutorOf(run_on);
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
  auto run = [invocation = *std::move(invocation),
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
  };
  const RunOn& run_on = function.options().run_on;
  std::vector<async::Future<void>> prerequisites =
      arguments.TakePrerequisites();
  if (!prerequisites.empty()) {
    RunAfter(std::move(prerequisites), run_on, std::move(run));
  } else if (run_on.kind() == RunOn::Kind::kInline &&
             !async::ThreadPool::IsNearlyExhausted()) {
    run(absl::OkStatus());
  } else {
    // Not here: the service may have work to do before the function ends.
    state_->Post(ExecutorOf(run_on),
                 [run = std::move(run)]() mutable { run(absl::OkStatus()); });
  }
  return future;
}

}  // namespace hawser::rpc
