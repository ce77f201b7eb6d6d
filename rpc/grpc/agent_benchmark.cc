// Calls of a registered function between two agents of one process over gRPC,
// beside an echo written directly on gRPC's completion queues.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "async/future.h"
#include "benchmark/benchmark.h"
#include "rpc/agent.h"
#include "rpc/function_registry.h"
#include "rpc/grpc/raw_echo.h"
#include "rpc/grpc/transport.h"
#include "store/hash_store.h"

namespace hawser::rpc {
namespace {

constexpr Function<std::string(std::string)> kEcho{"bench.Echo"};
constexpr Function<std::string(std::string)> kEchoInline{"bench.EchoInline"};
constexpr Function<Tensor(Tensor)> kTensor{"bench.Tensor"};

// Two workers that find each other in one store.
class Job {
 public:
  Job() {
    const auto echo = [](std::string text) { return text; };
    (void)registry_.Register(kEcho, echo);
    (void)registry_.Register(kEchoInline, echo, {.run_on = RunOn::Inline()});
    (void)registry_.Register(kTensor, [](Tensor tensor) { return tensor; });
    for (int rank = 0; rank < 2; ++rank) {
      AgentOptions options;
      options.name = "w" + std::to_string(rank);
      options.rank = rank;
      options.store = &store_;
      options.registry = &registry_;
      options.num_threads = 2;
      options.transport = std::make_unique<GrpcTransport>(
          GrpcTransportOptions{.num_polling_threads = 1});
      agents_.push_back(*Agent::Start(std::move(options)));
    }
  }
  Agent& caller() { return *agents_[0]; }

 private:
  store::HashStore store_;
  FunctionRegistry registry_;
  std::vector<std::unique_ptr<Agent>> agents_;
};

// Keeps `state.range(0)` calls in flight.
template <class Function, class Argument>
void KeepInFlight(benchmark::State& state, const Function& function,
                  const Argument& argument) {
  Job job;
  const auto in_flight = static_cast<size_t>(state.range(0));
  std::vector<decltype(job.caller().Async("w1", function, argument))> futures(
      in_flight);
  for (auto& future : futures) {
    future = job.caller().Async("w1", function, argument);
  }
  size_t next = 0;
  for (auto _ : state) {
    if (!std::move(futures[next]).Wait().ok()) {
      state.SkipWithError("a call failed");
      break;
    }
    futures[next] = job.caller().Async("w1", function, argument);
    next = (next + 1) % in_flight;
  }
  for (auto& future : futures) {
    if (future.valid()) (void)future.Wait();
  }
  state.SetItemsProcessed(state.iterations());
}

void BM_AgentEcho(benchmark::State& state) {
  KeepInFlight(state, kEcho, std::string(100, 'x'));
}
BENCHMARK(BM_AgentEcho)
    ->Arg(1)
    ->Arg(64)
    ->MeasureProcessCPUTime()
    ->UseRealTime();

void BM_AgentEchoInline(benchmark::State& state) {
  KeepInFlight(state, kEchoInline, std::string(100, 'x'));
}
BENCHMARK(BM_AgentEchoInline)
    ->Arg(1)
    ->Arg(64)
    ->MeasureProcessCPUTime()
    ->UseRealTime();

void BM_AgentTensor(benchmark::State& state) {
  const Tensor tensor = Tensor::Ones({state.range(1)});
  KeepInFlight(state, kTensor, tensor);
  state.SetBytesProcessed(state.iterations() * 2 * tensor.byte_size());
}
BENCHMARK(BM_AgentTensor)
    ->Args({1, 1 << 18})
    ->Args({4, 1 << 18})
    ->Args({1, 16 << 20})
    ->MeasureProcessCPUTime()
    ->UseRealTime();

void BM_RawEcho(benchmark::State& state) {
  RawEcho echo;
  echo.Start(static_cast<int>(state.range(0)), 100);
  for (auto _ : state) echo.AwaitOne();
  echo.Stop();
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_RawEcho)->Arg(1)->Arg(64)->MeasureProcessCPUTime()->UseRealTime();

}  // namespace
}  // namespace hawser::rpc
