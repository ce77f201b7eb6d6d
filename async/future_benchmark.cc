// Cost of futures, of coroutines, and of posting work to a pool.

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "async/coroutine.h"
#include "async/future.h"
#include "async/thread_pool.h"
#include "benchmark/benchmark.h"

namespace hawser::async {
namespace {

void BM_SetThenWait(benchmark::State& state) {
  for (auto _ : state) {
    Promise<int> promise;
    Future<int> future = promise.future();
    promise.Set(1);
    benchmark::DoNotOptimize(std::move(future).Wait());
  }
}
BENCHMARK(BM_SetThenWait);

void BM_OnReadyThenSet(benchmark::State& state) {
  int sum = 0;
  for (auto _ : state) {
    Promise<int> promise;
    promise.future().OnReady([&](const auto& result) { sum += *result; });
    promise.Set(1);
  }
  benchmark::DoNotOptimize(sum);
}
BENCHMARK(BM_OnReadyThenSet);

void BM_ThenThenSet(benchmark::State& state) {
  for (auto _ : state) {
    Promise<int> promise;
    Future<int> next = promise.future().Then(
        [](absl::StatusOr<int> result) { return *result + 1; });
    promise.Set(1);
    benchmark::DoNotOptimize(std::move(next).Wait());
  }
}
BENCHMARK(BM_ThenThenSet);

Future<int> AddOne(Future<int> future) {
  CO_ASSIGN_OR_RETURN(const int value, co_await std::move(future));
  co_return value + 1;
}

void BM_CoroutineThenSet(benchmark::State& state) {
  for (auto _ : state) {
    Promise<int> promise;
    Future<int> next = AddOne(promise.future());
    promise.Set(1);
    benchmark::DoNotOptimize(std::move(next).Wait());
  }
}
BENCHMARK(BM_CoroutineThenSet);

// Argument: number of closures posted before waiting for the last one.
void BM_PoolRoundTrip(benchmark::State& state) {
  ThreadPool pool({.num_threads = 2});
  for (auto _ : state) {
    for (int64_t i = 1; i < state.range(0); ++i) pool.Post([] {});
    Promise<void> promise;
    Future<void> done = promise.future();
    pool.Post([promise = std::move(promise)]() mutable {
      promise.Set(absl::OkStatus());
    });
    benchmark::DoNotOptimize(std::move(done).Wait());
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_PoolRoundTrip)->Arg(1)->Arg(64)->UseRealTime();

}  // namespace
}  // namespace hawser::async
