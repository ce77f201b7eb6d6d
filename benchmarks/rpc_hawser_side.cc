#include <malloc.h>

#include <atomic>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/future.h"
#include "async/status_macros.h"
#include "benchmarks/peer_process.h"
#include "benchmarks/rpc_side.h"
#include "benchmarks/store_process.h"
#include "launch/worker.h"
#include "rpc/functions/function.h"
#include "rpc/functions/function_registry.h"
#include "rpc/grpc/transport.h"
#include "rref/rref.h"
#include "store/grpc/store.h"
#include "tensor/ops/elementwise.h"
#include "tensor/tensor.h"

namespace hawser::benchmarks {
namespace {

// Small functions run in the thread that receives the request (RunOn::Inline),
// as the echo of raw gRPC does.
inline constexpr rpc::Function<std::string(std::string)> kEcho{"bench.Echo"};
inline constexpr rpc::Function<Tensor(Tensor, Tensor)> kAdd{"bench.Add"};
inline constexpr rpc::Function<int64_t(Tensor)> kSink{"bench.Sink"};
// Replies with a tensor of that many bytes.
inline constexpr rpc::Function<Tensor(int64_t)> kMake{"bench.Make"};
// Runs on the callee's executor.
inline constexpr rpc::Function<std::string(std::string)> kPoolEcho{
    "bench.PoolEcho"};
// Replies when kRelease is called.
inline constexpr rpc::Function<int64_t()> kHold{"bench.Hold"};
inline constexpr rpc::Function<void()> kRelease{"bench.Release"};
inline constexpr rpc::Function<int64_t()> kNumHeld{"bench.NumHeld"};
inline constexpr rpc::Function<int64_t()> kHeapBytes{"bench.HeapBytes"};

int64_t HeapBytes() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<int64_t>(info.uordblks + info.hblkhd);
}

// The waiting calls and their release.
class Gate {
 public:
  async::Future<int64_t> Hold() {
    ++num_held_;
    return future_.Then([](absl::Status) -> int64_t { return 0; });
  }
  void Release() { promise_.Set(absl::OkStatus()); }
  int64_t num_held() const { return num_held_; }

 private:
  async::Promise<void> promise_;
  const async::Future<void> future_ = promise_.future();
  std::atomic<int64_t> num_held_ = 0;
};

absl::Status Register(rpc::FunctionRegistry& registry, Gate& gate) {
  const rpc::FunctionOptions here = {.run_on = rpc::RunOn::Inline()};
  RETURN_IF_ERROR(registry.Register(
      kEcho, [](std::string text) { return text; }, here));
  RETURN_IF_ERROR(registry.Register(
      kAdd, [](const Tensor& a, const Tensor& b) { return tensor::Add(a, b); },
      here));
  RETURN_IF_ERROR(registry.Register(
      kSink, [](const Tensor&) -> int64_t { return 0; }, here));
  RETURN_IF_ERROR(registry.Register(
      kMake,
      [tensor = Tensor()](int64_t bytes) mutable {
        if (!tensor.defined() || tensor.byte_size() != bytes)
          tensor = Tensor::Ones({bytes / 4});
        return tensor;
      },
      here));
  RETURN_IF_ERROR(
      registry.Register(kPoolEcho, [](std::string text) { return text; }));
  RETURN_IF_ERROR(registry.Register(
      kHold, [&gate] { return gate.Hold(); }, here));
  RETURN_IF_ERROR(registry.Register(kRelease, [&gate] {
    gate.Release();
    return absl::OkStatus();
  }));
  RETURN_IF_ERROR(registry.Register(
      kNumHeld, [&gate] { return gate.num_held(); }, here));
  return registry.Register(kHeapBytes, HeapBytes, here);
}

rpc::GrpcTransportOptions OptionsOf(HawserWay way) {
  return {.same_host = way.same_host, .busy_poll = way.busy_poll};
}

absl::Status Serve(const std::string& store_address, HawserWay way) {
  Gate gate;
  rpc::FunctionRegistry registry;
  RETURN_IF_ERROR(Register(registry, gate));
  ASSIGN_OR_RETURN(const auto store,
                   store::GrpcStore::Connect({.address = store_address}));
  ASSIGN_OR_RETURN(
      const auto worker,
      launch::Worker::Start({.identity = {.name = "server", .rank = 0},
                             .meeting_place = {.store = store.get()},
                             .registry = &registry,
                             .network = {.grpc = OptionsOf(way)}}));
  std::cout << "ready" << std::endl;
  std::cin.get();
  return worker->Shutdown(/*graceful=*/false);
}

class HawserSide final : public RpcSide {
 public:
  HawserSide(std::unique_ptr<PeerProcess> store_server,
             std::unique_ptr<PeerProcess> server,
             std::unique_ptr<store::GrpcStore> store,
             std::unique_ptr<launch::Worker> worker)
      : store_server_(std::move(store_server)),
        server_(std::move(server)),
        store_(std::move(store)),
        worker_(std::move(worker)),
        agent_(worker_->agent()) {}

  absl::StatusOr<double> SmallCall(int64_t calls) override {
    return MedianMicroseconds(
        calls, [&] { return agent_.Sync("server", kEcho, text_).status(); });
  }
  absl::StatusOr<double> CallsInFlight(int64_t calls,
                                       int64_t in_flight) override {
    return Keep(calls, in_flight,
                [&] { return agent_.Async("server", kEcho, text_); });
  }
  absl::StatusOr<double> OneWay(int64_t calls, int64_t bytes) override {
    const Tensor tensor = Tensor::Ones({bytes / 4});
    return BytesPerSecond(calls, bytes, [&] {
      return agent_.Sync("server", kSink, tensor).status();
    });
  }
  absl::StatusOr<double> Reply(int64_t calls, int64_t bytes) override {
    return BytesPerSecond(calls, bytes, [&] {
      return agent_.Sync("server", kMake, bytes).status();
    });
  }
  absl::StatusOr<double> PoolCall(int64_t calls) override {
    return MedianMicroseconds(calls, [&] {
      return agent_.Sync("server", kPoolEcho, text_).status();
    });
  }
  absl::StatusOr<double> CallsFromThreads(int64_t calls,
                                          int64_t threads) override {
    return PerSecond(calls, [&]() -> absl::Status {
      std::atomic<int64_t> calls_left = calls;
      std::vector<absl::Status> results(static_cast<size_t>(threads));
      std::vector<std::thread> callers;
      for (absl::Status& result : results) {
        callers.emplace_back([&] {
          while (result.ok() && calls_left.fetch_sub(1) > 0) {
            result = agent_.Sync("server", kEcho, text_).status();
          }
        });
      }
      for (std::thread& caller : callers) caller.join();
      for (const absl::Status& result : results) RETURN_IF_ERROR(result);
      return absl::OkStatus();
    });
  }
  absl::StatusOr<double> SmallTensorCall(int64_t calls) override {
    return MedianMicroseconds(calls, [&] {
      return agent_.Sync("server", kAdd, one_, one_).status();
    });
  }
  absl::StatusOr<double> TensorCallsInFlight(int64_t calls,
                                             int64_t in_flight) override {
    return Keep(calls, in_flight,
                [&] { return agent_.Async("server", kAdd, one_, one_); });
  }
  absl::StatusOr<double> RemoteToHere(int64_t calls) override {
    return PerSecond(calls, [&]() -> absl::Status {
      std::vector<rref::RRef<Tensor>> references;
      for (int64_t i = 0; i < calls; ++i) {
        ASSIGN_OR_RETURN(auto reference,
                         rref::Remote(agent_, "server", kAdd, one_, one_));
        references.push_back(std::move(reference));
      }
      for (const auto& reference : references) {
        RETURN_IF_ERROR(reference.ToHere());
      }
      return absl::OkStatus();
    });
  }
  absl::StatusOr<double> Outstanding(int64_t calls) override {
    ASSIGN_OR_RETURN(const int64_t there, agent_.Sync("server", kHeapBytes));
    const int64_t here = HeapBytes();
    std::vector<async::Future<int64_t>> futures;
    futures.reserve(static_cast<size_t>(calls));
    for (int64_t i = 0; i < calls; ++i) {
      futures.push_back(agent_.Async("server", kHold));
    }
    for (int64_t held = 0; held < calls;) {
      ASSIGN_OR_RETURN(held, agent_.Sync("server", kNumHeld));
    }
    ASSIGN_OR_RETURN(const int64_t there_now,
                     agent_.Sync("server", kHeapBytes));
    const int64_t here_now = HeapBytes();
    RETURN_IF_ERROR(agent_.Sync("server", kRelease));
    for (auto& future : futures) RETURN_IF_ERROR(std::move(future).Wait());
    return static_cast<double>(there_now - there + here_now - here) /
           static_cast<double>(calls);
  }

 private:
  // State of the chains that keep calls in flight.
  template <class Start>
  struct Chains {
    const Start start;
    std::atomic<int64_t> calls_left;
    std::atomic<int64_t> chains_left;
    async::Promise<void> ended;
  };
  template <class Start>
  static absl::StatusOr<double> Keep(int64_t calls, int64_t in_flight,
                                     const Start& start) {
    return PerSecond(calls, [&]() -> absl::Status {
      std::shared_ptr<Chains<Start>> chains(
          new Chains<Start>{start, calls, in_flight, {}});
      const async::Future<void> ended = chains->ended.future();
      for (int64_t i = 0; i < in_flight; ++i) GoOn(chains);
      return ended.Wait();
    });
  }
  // Starts the next call of a chain. Its end starts another one.
  template <class Start>
  static void GoOn(const std::shared_ptr<Chains<Start>>& chains) {
    if (chains->calls_left.fetch_sub(1) > 0) {
      chains->start().OnReady([chains](const auto& result) {
        if (result.ok()) {
          GoOn(chains);
        } else {
          (void)chains->ended.Set(result.status());
        }
      });
    } else if (chains->chains_left.fetch_sub(1) == 1) {
      (void)chains->ended.Set(absl::OkStatus());
    }
  }

  const std::unique_ptr<PeerProcess> store_server_;
  const std::unique_ptr<PeerProcess> server_;
  const std::unique_ptr<store::GrpcStore> store_;
  const std::unique_ptr<launch::Worker> worker_;
  rpc::Agent& agent_;
  const std::string text_ = std::string(64, 'x');
  const Tensor one_ = Tensor::Ones({1});
};

}  // namespace

int ServeHawser(const std::string& store_address, HawserWay way) {
  const absl::Status status = Serve(store_address, way);
  if (!status.ok()) std::cerr << "rpc: " << status << "\n";
  return status.ok() ? 0 : 1;
}

absl::StatusOr<std::unique_ptr<RpcSide>> StartHawserSide(HawserWay way) {
  const std::string self = "/proc/self/exe";
  const std::string advice = "see the error above";
  ASSIGN_OR_RETURN(auto store_server, StartStoreProcess());
  const std::string address = store_server->description();
  ASSIGN_OR_RETURN(
      auto server,
      PeerProcess::Start({self, "--serve=hawser", "--store=" + address,
                          absl::StrCat("--same_host=", way.same_host),
                          absl::StrCat("--busy_poll=", way.busy_poll)},
                         advice));
  ASSIGN_OR_RETURN(auto store, store::GrpcStore::Connect({.address = address}));
  ASSIGN_OR_RETURN(auto worker, launch::Worker::Start(
                                    {.identity = {.name = "client", .rank = 1},
                                     .meeting_place = {.store = store.get()},
                                     .network = {.grpc = OptionsOf(way)}}));
  return std::make_unique<HawserSide>(std::move(store_server),
                                      std::move(server), std::move(store),
                                      std::move(worker));
}

}  // namespace hawser::benchmarks
