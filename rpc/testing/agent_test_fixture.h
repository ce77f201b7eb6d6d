// Fixture with several agents in one process, over any transport.

#ifndef HAWSER_RPC_TESTING_AGENT_TEST_FIXTURE_H_
#define HAWSER_RPC_TESTING_AGENT_TEST_FIXTURE_H_

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "async/clock.h"
#include "async/testing/status_matchers.h"
#include "async/thread_pool.h"
#include "gtest/gtest.h"
#include "rpc/agent/agent.h"
#include "rpc/functions/function_registry.h"
#include "rpc/inproc/network.h"
#include "store/hash/store.h"

namespace hawser::rpc {

// A job of workers "w0", "w1", ... with a common registry and store.
class TestJob {
 public:
  using MakeTransport = std::function<std::unique_ptr<Transport>()>;

  explicit TestJob(MakeTransport make_transport = nullptr)
      : make_transport_(std::move(make_transport)) {}
  ~TestJob() { StopAll(); }

  FunctionRegistry& registry() { return registry_; }
  store::HashStore& store() { return store_; }
  InprocNetwork& network() { return network_; }
  Agent& agent(int rank) { return *agents_[rank]; }
  std::unique_ptr<Agent>& owned(int rank) { return agents_[rank]; }

  AgentOptions Options(int rank, std::optional<int> world_size) {
    AgentOptions options;
    options.name = "w" + std::to_string(rank);
    options.rank = rank;
    options.world_size = world_size;
    options.store = &store_;
    options.transport = make_transport_ != nullptr ? make_transport_()
                                                   : network_.NewTransport();
    options.registry = &registry_;
    options.default_timeout = absl::Seconds(20);
    options.start_timeout = absl::Seconds(60);
    options.shutdown_timeout = absl::Seconds(60);
    options.num_threads = 4;
    // Generous, for overloaded machines.
    options.liveness.silent_limit = absl::Seconds(20);
    return options;
  }

  using Change = std::function<void(int rank, AgentOptions& options)>;
  // Starts all workers concurrently.
  void StartAll(int world_size, const Change& change = nullptr) {
    std::vector<std::future<absl::StatusOr<std::unique_ptr<Agent>>>> starts;
    for (int rank = 0; rank < world_size; ++rank) {
      AgentOptions options = Options(rank, world_size);
      if (change != nullptr) change(rank, options);
      starts.push_back(std::async(std::launch::async,
                                  [options = std::move(options)]() mutable {
                                    return Agent::Start(std::move(options));
                                  }));
    }
    for (auto& start : starts) {
      absl::StatusOr<std::unique_ptr<Agent>> agent = start.get();
      ASSERT_THAT(agent, async::IsOk());
      agents_.push_back(*std::move(agent));
    }
  }

  // Adds a worker to a job without a world size.
  void StartOne(int rank, const Change& change = nullptr) {
    AgentOptions options = Options(rank, std::nullopt);
    if (change != nullptr) change(rank, options);
    absl::StatusOr<std::unique_ptr<Agent>> agent =
        Agent::Start(std::move(options));
    ASSERT_THAT(agent, async::IsOk());
    agents_.push_back(*std::move(agent));
  }

  // Shuts all workers down gracefully and concurrently; returns the results by
  // rank.
  std::vector<absl::Status> ShutdownAll() {
    std::vector<std::future<absl::Status>> shutdowns;
    for (auto& agent : agents_) {
      shutdowns.push_back(
          std::async(std::launch::async, [&] { return agent->Shutdown(); }));
    }
    std::vector<absl::Status> statuses;
    for (auto& shutdown : shutdowns) statuses.push_back(shutdown.get());
    return statuses;
  }

  void StopAll() { agents_.clear(); }

 private:
  const MakeTransport make_transport_;
  FunctionRegistry registry_;
  store::HashStore store_;
  async::RealClock clock_;
  async::ThreadPool pool_{{.num_threads = 4, .name = "network"}};
  InprocNetwork network_{{.executor = &pool_, .clock = &clock_}};
  std::vector<std::unique_ptr<Agent>> agents_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_TESTING_AGENT_TEST_FIXTURE_H_
