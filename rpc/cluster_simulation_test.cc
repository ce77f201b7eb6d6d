// Whole jobs in one thread: agents, membership and network under faults that a
// seed decides, checked against what docs/rpc.md promises.
//
// One seed again, with what happens printed:
//   ./bazelw test //rpc:cluster_simulation_test --test_output=all
//       --test_env=HAWSER_SIMULATION_SEED=<seed>
// Other numbers of seeds: --test_env=HAWSER_SIMULATION_SEEDS=<count>.

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "async/manual_executor.h"
#include "async/random_source.h"
#include "async/simulated_clock.h"
#include "async/status_matchers.h"
#include "gtest/gtest.h"
#include "rpc/agent.h"
#include "rpc/function_registry.h"
#include "rpc/inproc/network.h"
#include "rpc/member_views.h"
#include "rpc/membership_log.h"
#include "rpc/simulated_store_link.h"
#include "rpc/tracked_calls.h"
#include "store/hash_store.h"

namespace hawser::rpc {
namespace {

constexpr Function<void(int64_t)> kTouch{"test.Touch"};
constexpr int kNodes = 4;
constexpr int kSteps = 30;
constexpr absl::Duration kTick = absl::Milliseconds(20);
// After the network is whole again.
constexpr absl::Duration kConvergence = absl::Seconds(10);
// The limit of silence, and a round.
constexpr absl::Duration kSettling = absl::Milliseconds(3500);

// One process: at most one agent at a time.
struct Node {
  std::string name;
  std::unique_ptr<SimulatedStoreLink> link;
  std::unique_ptr<Agent> agent;
};

class Simulation {
 public:
  Simulation(uint64_t seed, bool verbose)
      : random_(seed),
        verbose_(verbose),
        network_({.seed = seed * 7919 + 1,
                  .executor = &executor_,
                  .clock = &clock_}),
        nodes_(kNodes) {
    EXPECT_THAT(
        registry_.Register(kTouch, [this](int64_t call) { Executed(call); }),
        async::IsOk());
    for (int i = 0; i < kNodes; ++i) nodes_[i].name = absl::StrCat("w", i);
  }

  ~Simulation() {
    for (Node& node : nodes_) Kill(node);
  }

  // 1. Random faults.
  // 2. All is whole again: everybody is back, sees the same and is reached.
  void Run() {
    for (int i = 0; i < kNodes; ++i) Start(i);
    for (int step = 0; step < kSteps; ++step) {
      Step();
      Advance(absl::Milliseconds(random_.Below(1500)));
    }
    Heal();
    const async::MonotonicTime healed = clock_.Now();
    // Silences that began before still come to their verdicts.
    Advance(kSettling);
    while (!Converged()) {
      if (async::TimeBetween(healed, clock_.Now()) > kConvergence) {
        Fail(absl::StrCat("no convergence: ", Views()));
        return;
      }
      RestartTheGone();
      Advance(absl::Milliseconds(200));
    }
    CheckReachability();
    Advance(absl::Seconds(10));
    Fail(calls_.Check());
    MembershipLog log(&store_, AgentOptions().job);
    Fail(views_.Check(log));
  }

  const std::string& failure() const { return failure_; }

 private:
  void Note(const std::string& text) {
    if (!verbose_) return;
    std::cerr << absl::ToDoubleSeconds(
                     async::TimeBetween(async::MonotonicTime(), clock_.Now()))
              << " " << text << "\n";
  }
  // Nothing has failed where `text` is empty.
  void Fail(const std::string& text) {
    if (text.empty()) return;
    Note("FAILED " + text);
    if (failure_.empty()) failure_ = text;
  }

  void Advance(absl::Duration time) {
    for (absl::Duration t; t < time; t += kTick) {
      clock_.AdvanceBy(kTick);
      executor_.RunAll();
    }
  }

  void Executed(int64_t number) {
    const Incarnation self = CurrentCall::Get()->agent().info().incarnation;
    Note(absl::StrCat("call ", number, " runs at ", ToString(self)));
    Fail(calls_.Executed(number, self));
  }

  bool Start(int i) {
    Node& node = nodes_[i];
    auto link = std::make_unique<SimulatedStoreLink>(&store_);
    AgentOptions options;
    options.name = node.name;
    options.rank = i;
    options.store = link.get();
    options.transport = network_.NewTransport();
    options.registry = &registry_;
    options.clock = &clock_;
    options.executor = &executor_;
    // Does not wait for a holder's lease to lapse.
    options.start_timeout = absl::ZeroDuration();
    absl::StatusOr<std::unique_ptr<Agent>> agent =
        Agent::Start(std::move(options));
    if (!agent.ok()) {
      if (!absl::IsAlreadyExists(agent.status())) {
        Fail(absl::StrCat("start: ", agent.status().ToString()));
      }
      return false;
    }
    node.link = std::move(link);
    node.agent = *std::move(agent);
    const Incarnation incarnation = node.agent->info().incarnation;
    Note(absl::StrCat(node.name, " starts as ", ToString(incarnation)));
    node.agent->WatchMembers([this, incarnation](const MemberEvent& event) {
      views_.Add(incarnation, event);
    });
    return true;
  }

  // Ends without a word to anybody.
  void Kill(Node& node) {
    if (node.agent == nullptr) return;
    node.link->Cut(true);
    network_.Crash(node.agent->info().address);
    node.agent.reset();
  }

  static bool DeclaredLost(const Node& node) {
    return node.agent->DebugInfo()["agent.declared_lost"] == "1";
  }

  void RestartTheGone() {
    for (int i = 0; i < kNodes; ++i) {
      Node& node = nodes_[i];
      if (node.agent != nullptr && DeclaredLost(node)) Kill(node);
      if (node.agent == nullptr) Start(i);
    }
  }

  void Call(Node& from, int to, bool pin) {
    Destination destination(nodes_[to].name);
    Incarnation pinned{};
    if (pin && nodes_[to].agent != nullptr) {
      pinned = nodes_[to].agent->info().incarnation;
      destination = Destination(nodes_[to].agent->info());
    }
    const int64_t number = calls_.Begin(pinned);
    Note(absl::StrCat("call ", number, " from ", from.name, " to ",
                      nodes_[to].name));
    async::Future<void> future = from.agent->Async(
        destination, {.timeout = absl::Milliseconds(100 + random_.Below(4000))},
        kTouch, number);
    future.OnReady([this, number](const absl::Status& status) {
      calls_.Ended(number, status);
    });
  }

  int CountRunning() const {
    return static_cast<int>(
        std::count_if(nodes_.begin(), nodes_.end(),
                      [](const Node& node) { return node.agent != nullptr; }));
  }

  Node& Any() { return nodes_[random_.Below(kNodes)]; }

  void Step() {
    Node& node = Any();
    Node& other = Any();
    const bool both =
        node.agent != nullptr && other.agent != nullptr && &node != &other;
    switch (random_.Below(12)) {
      case 0:
        // Not the last: nobody would be left to find the dead lost, and who
        // starts here does not wait for it (RendezvousTest does).
        if (CountRunning() < 2) break;
        Note("kill " + node.name);
        Kill(node);
        break;
      case 1:
      case 2:
        RestartTheGone();
        break;
      case 3:
        Leave(node);
        break;
      case 4:
        if (!both) break;
        Note(absl::StrCat("partition ", node.name, " ", other.name));
        Partition(node, other, true);
        break;
      case 5:
        if (both) Partition(node, other, false);
        break;
      case 6:
        if (node.agent == nullptr) break;
        Note("cut the store of " + node.name);
        node.link->Cut(true);
        break;
      case 7:
        if (node.agent != nullptr) node.link->Cut(false);
        break;
      case 8:
        network_.SetFaults(
            {.drop_request = 0.2 * random_.Uniform(),
             .drop_reply = 0.2 * random_.Uniform(),
             .duplicate_request = 0.3 * random_.Uniform(),
             .duplicate_reply = 0.3 * random_.Uniform(),
             .min_delay = absl::ZeroDuration(),
             .max_delay = absl::Milliseconds(random_.Below(200))});
        break;
      case 9:
        if (!both) break;
        network_.Break(node.agent->info().address, other.agent->info().address);
        break;
      default:
        break;
    }
    for (int i = 0; i < 6; ++i) {
      Node& from = Any();
      const int to = static_cast<int>(random_.Below(kNodes));
      const bool pin = random_.Below(2) == 0;
      if (from.agent != nullptr) Call(from, to, pin);
    }
  }

  // Only when it is idle: a wait would stop the one thread.
  void Leave(Node& node) {
    if (node.agent == nullptr || node.link->cut() ||
        node.agent->num_client_calls() > 0 ||
        node.agent->num_server_calls() > 0) {
      return;
    }
    Note("leave " + node.name);
    const absl::Status status = node.agent->Shutdown();
    if (!status.ok()) Fail(absl::StrCat("leave: ", status.ToString()));
    node.agent.reset();
  }

  void Partition(const Node& a, const Node& b, bool partitioned) {
    const std::pair<std::string, std::string> pair{a.agent->info().address,
                                                   b.agent->info().address};
    network_.Partition(pair.first, pair.second, partitioned);
    if (partitioned) partitions_.insert(pair);
  }

  void Heal() {
    Note("all is whole again");
    network_.SetFaults({});
    for (const auto& [a, b] : partitions_) network_.Partition(a, b, false);
    for (Node& node : nodes_) {
      if (node.agent != nullptr) node.link->Cut(false);
    }
  }

  bool Converged() {
    std::set<Incarnation> all;
    for (const Node& node : nodes_) {
      if (node.agent == nullptr || DeclaredLost(node)) return false;
      all.insert(node.agent->info().incarnation);
    }
    for (Incarnation member : all) {
      if (views_.MembersOf(member) != all) return false;
    }
    // Nor does one find another lost of which the others do not know yet.
    for (const Node& node : nodes_) {
      for (const Node& other : nodes_) {
        if (node.agent->IsLost(other.agent->info())) return false;
      }
    }
    return true;
  }

  std::string Views() {
    std::string text;
    for (const Node& node : nodes_) {
      absl::StrAppend(&text, "\n  ", node.name, ": ");
      if (node.agent == nullptr) {
        absl::StrAppend(&text, "not running");
        continue;
      }
      const Incarnation incarnation = node.agent->info().incarnation;
      absl::StrAppend(&text, DeclaredLost(node) ? "lost; " : "",
                      views_.Text(incarnation));
    }
    return text;
  }

  void CheckReachability() {
    std::vector<int64_t> numbers;
    for (Node& from : nodes_) {
      for (Node& to : nodes_) {
        const int64_t number = calls_.Begin();
        numbers.push_back(number);
        from.agent->Async(to.name, kTouch, number)
            .OnReady([this, number](const absl::Status& status) {
              calls_.Ended(number, status);
            });
      }
    }
    Advance(absl::Seconds(1));
    for (const int64_t number : numbers) {
      const absl::Status& outcome = calls_.outcome(number);
      if (!outcome.ok()) {
        Fail(absl::StrCat("after convergence: ", outcome.ToString()));
      }
    }
  }

  async::RandomSource random_;
  const bool verbose_;
  std::string failure_;
  async::ManualExecutor executor_;
  async::SimulatedClock clock_;
  store::HashStore store_;
  FunctionRegistry registry_;
  InprocNetwork network_;
  TrackedCalls calls_;
  MemberViews views_;
  std::set<std::pair<std::string, std::string>> partitions_;
  std::vector<Node> nodes_;
};

uint64_t NumberFromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  uint64_t number = otherwise;
  if (text != nullptr && !absl::SimpleAtoi(text, &number)) {
    ADD_FAILURE() << name << " is no number: " << text;
  }
  return number;
}

TEST(ClusterSimulationTest, PromisesOfCallsAndMembershipHoldUnderAllSeeds) {
  const bool one = std::getenv("HAWSER_SIMULATION_SEED") != nullptr;
  const uint64_t first = NumberFromEnvironment("HAWSER_SIMULATION_SEED", 1);
  const uint64_t count = one ? 1
                             : NumberFromEnvironment("HAWSER_SIMULATION_SEEDS",
                                                     HAWSER_DEFAULT_SEEDS);
  for (uint64_t seed = first; seed < first + count; ++seed) {
    Simulation simulation(seed, /*verbose=*/one);
    simulation.Run();
    ASSERT_EQ(simulation.failure(), "")
        << "seed " << seed << "; again: HAWSER_SIMULATION_SEED=" << seed;
  }
}

}  // namespace
}  // namespace hawser::rpc
