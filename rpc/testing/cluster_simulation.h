// A whole job in one thread.

#ifndef HAWSER_RPC_TESTING_CLUSTER_SIMULATION_H_
#define HAWSER_RPC_TESTING_CLUSTER_SIMULATION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/future.h"
#include "async/random_source.h"
#include "async/testing/manual_executor.h"
#include "async/testing/simulated_clock.h"
#include "rpc/agent/agent.h"
#include "rpc/agent/agent_options.h"
#include "rpc/functions/function_registry.h"
#include "rpc/identity/worker_info.h"
#include "rpc/inproc/network.h"
#include "rpc/membership/membership_log.h"
#include "rpc/testing/deterministic_threads.h"
#include "rpc/testing/member_views.h"
#include "rpc/testing/simulated_store_link.h"
#include "rpc/testing/tracked_calls.h"
#include "store/hash/store.h"

namespace hawser::rpc {

// Workers "w0", "w1", ... with their network and store, under faults that a
// seed decides. Time passes only in Advance, and, for a worker whose store is
// slow, while a call of the store is under way: other things happen meanwhile,
// as they do while a thread is blocked.
//
// What every run must keep to is checked here, whatever the test is about:
//
//   - Leave and Shutdown succeed unless the worker's own store fails them, or,
//     in a group, a worker was lost; and a name that was given back can be
//     taken again at once;
//   - after the faults all workers see the same members and are reached;
//   - G9 of docs/rpc/guarantees.md, and, of the calls made through it, G1, G2,
//   G4 and G5;
//   - nothing runs where a worker was told that it has left.
//
// The first violation is kept in failure(). Not thread-safe.
class ClusterSimulation {
 public:
  struct Options {
    int num_workers = 4;
    // Whether the job has a world size: all start in StartTogether, once, and
    // leave together.
    bool group = false;
    // Says what happens on stderr.
    bool verbose = false;
    // Changes the options of a worker that starts; may be null.
    std::function<void(AgentOptions& options)> configure = nullptr;
    // Runs before a worker ends, also one that has left; may be null.
    std::function<void(const WorkerInfo& worker)> on_end = nullptr;
  };

  ClusterSimulation(uint64_t seed, Options options);
  // Kills all workers.
  ~ClusterSimulation();
  ClusterSimulation(const ClusterSimulation&) = delete;
  ClusterSimulation& operator=(const ClusterSimulation&) = delete;

  FunctionRegistry& registry() { return registry_; }
  async::RandomSource& random() { return random_; }
  async::Clock& clock() { return clock_; }
  InprocNetwork& network() { return network_; }
  int num_workers() const { return static_cast<int>(workers_.size()); }
  // Null while that worker does not run.
  Agent* agent(int worker) { return workers_[worker].agent.get(); }
  // Whether it has begun to leave.
  bool leaving(int worker) const {
    return workers_[worker].leaving.has_value();
  }
  // Whether it knows that it was declared lost.
  bool DeclaredLost(int worker) const { return DeclaredLost(workers_[worker]); }
  // Whether `worker` is a member in the eyes of `observer`.
  bool Sees(int observer, int worker);
  // How many events of the store it reported: that others are lost.
  int CountReportsOf(int worker);
  // Who has that worker's name in the store.
  std::optional<WorkerInfo> HolderOf(int worker);

  // --- What a test makes happen.

  void Advance(absl::Duration time);

  // Starts those that do not run, and anew those that were declared lost. Not
  // for a group.
  void RestartDeparted();
  // Starts all workers of a group, each of which waits for the others.
  void StartTogether();
  // Ends it without a word to anybody.
  void Kill(int worker);
  // Begins a graceful leave; some time after that has ended the worker stops.
  void Leave(int worker);
  // Shuts it down without leaving.
  void Stop(int worker);
  // Has messages from one to the other vanish. Both run.
  void Block(int from, int to, bool blocked);
  // Both ways.
  void Partition(int a, int b) { SetPartitioned(a, b, true); }
  void Heal(int a, int b) { SetPartitioned(a, b, false); }
  // Between a worker and the store.
  void PartitionStore(int worker) {
    SetStorePartitioned(workers_[worker], true);
  }
  void HealStore(int worker) { SetStorePartitioned(workers_[worker], false); }
  void SlowDownStore(int worker, bool slow) {
    workers_[worker].slow_store = slow;
  }
  // Ends all faults.
  void HealAll();
  // One of these, or a fault of network or store, or nothing.
  void RandomFault();

  // Begins a call of a function that does nothing, which is checked from then
  // on.
  int64_t Call(int from, int to, absl::Duration timeout = absl::Seconds(1));
  // Each worker calls each.
  void CallAll();
  // For calls of a test's own functions: what they run and what comes of them.
  TrackedCalls& calls() { return calls_; }
  void Executed(int64_t call);
  void Track(int64_t call, const async::Future<void>& future);

  // Nobody leaves any more: what they wait for has ended by then.
  void AwaitLeaving();
  // Heals all, restarts the departed, and waits until all who leave have left,
  // and all run, see and reach each other; a failure if that takes longer than
  // `limit` after the last one has left.
  void ExpectConvergence(absl::Duration limit = absl::Seconds(10));
  // At the end, with no call under way.
  void CheckHistory();

  void Note(const std::string& text) const;
  // Nothing has failed where `text` is empty.
  void Fail(const std::string& text);
  const std::string& failure() const { return failure_; }

 private:
  // One process: at most one agent at a time.
  struct Worker {
    std::string name;
    std::unique_ptr<SimulatedStoreLink> link;
    std::unique_ptr<Agent> agent;
    bool slow_store = false;
    // Whether its store failed it since it began to leave.
    bool store_failed = false;
    std::optional<async::Future<void>> leaving;
    // When it stops after it has left.
    std::optional<async::MonotonicTime> stop_time;
    // Whether nobody can have taken the name since it was given back.
    bool name_is_free = false;
  };

  void Tick();
  void SayThatItEnds(const Worker& worker);
  AgentOptions OptionsOf(int worker, SimulatedStoreLink& link);
  std::unique_ptr<SimulatedStoreLink> NewLink(int worker);
  bool Start(int worker);
  void Install(int worker, std::unique_ptr<SimulatedStoreLink> link,
               std::unique_ptr<Agent> agent);
  // Whether `status` is what a leave may come to.
  bool MayEndSo(const Worker& worker, const absl::Status& status) const;
  void SetStorePartitioned(Worker& worker, bool partitioned);
  void SetPartitioned(int a, int b, bool partitioned) {
    Block(a, b, partitioned);
    Block(b, a, partitioned);
  }
  // What a call of the store takes.
  void TraverseStoreLink(int worker);
  // Looks after those that leave, and stops them.
  void AttendLeaving();
  void FinishLeaving(int worker);
  // Ends the agent, whose futures are complete then.
  void Drop(Worker& worker);
  bool DeclaredLost(const Worker& worker) const;
  // Somebody must be left to find the dead lost: who starts here does not wait
  // for it (WorkerDirectoryTest does).
  bool OthersStay(int worker) const;
  bool Converged();
  void ExpectReachability();
  std::string Views();

  async::RandomSource random_;
  const Options options_;
  std::string failure_;
  async::ManualExecutor executor_;
  async::SimulatedClock clock_;
  store::HashStore store_;
  FunctionRegistry registry_;
  InprocNetwork network_;
  MembershipLog log_{&store_, AgentOptions().job};
  TrackedCalls calls_;
  MemberViews views_;
  std::set<std::pair<std::string, std::string>> blocked_;
  // While workers start together.
  DeterministicThreads* turns_ = nullptr;
  std::set<Incarnation> left_;
  // Ended without having left.
  std::set<Incarnation> ended_;
  // Calls of stores that are under way, each inside the one before.
  int num_store_calls_ = 0;
  // How much longer they may take before the tick has to end.
  absl::Duration store_delay_left_;
  std::vector<Worker> workers_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_TESTING_CLUSTER_SIMULATION_H_
