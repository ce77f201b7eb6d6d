// Single-threaded simulation of a whole job.

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
#include "async/testing/machine_clock.h"
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

// Workers "w0", "w1", ... with their network and store, under seeded faults.
// Each worker has a machine with a clock of its own. Time passes only in
// Advance and, for a worker with a slow store, during a call to the store;
// other events then happen meanwhile, as if a thread were blocked.
//
// Every run is checked for these invariants, in any test:
//
//   - Leave and Shutdown succeed unless the worker's own store fails, faults
//     last until shortly before its deadline or, in a group, a worker was lost;
//     and a released name can be claimed again at once;
//   - after the faults all workers see the same members and can reach each
//     other;
//   - G9 of docs/rpc/guarantees.md, and, of the calls made through it, G1, G2,
//   G4 and G5;
//   - no call runs on a worker that has reported that it has left.
//
// failure() returns the first violation. Not thread-safe.
class ClusterSimulation {
 public:
  struct Options {
    int num_workers = 4;
    // Whether the job has a world size: all workers start once, in
    // StartTogether, and leave together.
    bool group = false;
    // Logs events to stderr.
    bool verbose = false;
    // Changes the options of a starting worker; may be null.
    std::function<void(AgentOptions& options)> configure = nullptr;
    // Runs before a worker ends, even one that has left; may be null.
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
  // Returns null while the worker is not running.
  Agent* agent(int worker) { return workers_[worker].agent.get(); }
  // Whether the worker has started to leave.
  bool leaving(int worker) const {
    return workers_[worker].leaving.has_value();
  }
  // Whether the worker knows that it was declared lost.
  bool DeclaredLost(int worker) const { return DeclaredLost(workers_[worker]); }
  // Whether `observer` sees `worker` as a member.
  bool Sees(int observer, int worker);
  // Number of loss events in the store reported by the worker.
  int CountReportsOf(int worker);
  // Returns the holder of that worker's name in the store.
  std::optional<WorkerInfo> HolderOf(int worker);

  // --- Actions of a test.

  void Advance(absl::Duration time);

  // Starts workers that are not running and restarts those that were declared
  // lost. Not for a group.
  void RestartDeparted();
  // Starts all workers of a group, which wait for each other.
  void StartTogether();
  // Ends the worker without notifying others.
  void Kill(int worker);
  // Starts a graceful leave; the worker stops some time after it has ended.
  void Leave(int worker);
  // Shuts the worker down without leaving.
  void Stop(int worker);
  // Drops messages from one to the other. Both must be running.
  void Block(int from, int to, bool blocked);
  // Drops messages in both directions.
  void Partition(int a, int b) { SetPartitioned(a, b, true); }
  void Heal(int a, int b) { SetPartitioned(a, b, false); }
  // Partitions a worker from the store.
  void PartitionStore(int worker) {
    SetStorePartitioned(workers_[worker], true);
  }
  void HealStore(int worker) { SetStorePartitioned(workers_[worker], false); }
  void SlowDownStore(int worker, bool slow) {
    workers_[worker].slow_store = slow;
  }
  // Makes changes of the store fail, for all workers, as on a full disk.
  void FillStore(bool full);
  // Advances the clock of the worker's machine, so that timers are late.
  void JumpClock(int worker, absl::Duration time);
  // Suspends the worker's machine: its clock stops, and messages to and from it
  // are lost. It continues after `time`, and is then partitioned from nobody.
  void Suspend(int worker, absl::Duration time);
  // Ends all faults.
  void HealAll();
  // Causes a random one of these actions, a fault of network or store, or
  // nothing.
  void RandomFault();

  // Starts a tracked call of an empty function.
  int64_t Call(int from, int to, absl::Duration timeout = absl::Seconds(1));
  // Makes each worker call every worker.
  void CallAll();
  // Tracker for calls of a test's own functions.
  TrackedCalls& calls() { return calls_; }
  void Executed(int64_t call);
  void Track(int64_t call, const async::Future<void>& future);

  // Runs until no worker is leaving any more.
  void AwaitLeaving();
  // Heals all faults, restarts departed workers, and waits until all leaves
  // have ended and all workers run, see and reach each other. Fails if that
  // takes longer than `limit` after the last leave.
  void ExpectConvergence(absl::Duration limit = absl::Seconds(10));
  // Call at the end, with no call in flight.
  void CheckHistory();
  // Fails if the store has keys of departed workers. Call when all workers have
  // run for longer than a lease.
  void CheckStore();

  void Note(const std::string& text) const;
  // Records a failure; does nothing if `text` is empty.
  void Fail(const std::string& text);
  const std::string& failure() const { return failure_; }

 private:
  // One process, with at most one agent at a time.
  struct Worker {
    std::string name;
    std::unique_ptr<SimulatedStoreLink> link;
    std::unique_ptr<Agent> agent;
    bool slow_store = false;
    // Whether its store has failed since it started to leave.
    bool store_failed = false;
    // Time at which the suspended machine continues.
    std::optional<async::MonotonicTime> resume_time;
    std::optional<async::Future<void>> leaving;
    // Time at which it stops after it has left.
    std::optional<async::MonotonicTime> stop_time;
    // Whether the name cannot have been claimed since it was released.
    bool name_is_free = false;
  };

  void Tick();
  void SayThatItEnds(const Worker& worker);
  AgentOptions OptionsOf(int worker, SimulatedStoreLink& link);
  std::unique_ptr<SimulatedStoreLink> NewLink(int worker);
  bool Start(int worker);
  void Install(int worker, std::unique_ptr<SimulatedStoreLink> link,
               std::unique_ptr<Agent> agent);
  // Whether `status` is a valid outcome of a leave.
  bool MayEndSo(const Worker& worker, const absl::Status& status) const;
  void SetStorePartitioned(Worker& worker, bool partitioned);
  void Resume(int worker);
  // Continues machines whose suspension ends.
  void AttendSuspended();
  void SetPartitioned(int a, int b, bool partitioned) {
    Block(a, b, partitioned);
    Block(b, a, partitioned);
  }
  // Simulates the delay of a call to the store.
  void TraverseStoreLink(int worker);
  // Checks leaving workers and stops them.
  void AttendLeaving();
  void FinishLeaving(int worker);
  // Ends the agent; its futures are complete afterwards.
  void Drop(Worker& worker);
  bool DeclaredLost(const Worker& worker) const;
  // A running worker must remain to detect losses, since starting workers here
  // do not wait for lapsing leases (WorkerDirectoryTest does).
  bool OthersStay(int worker) const;
  bool Converged();
  void ExpectReachability();
  std::string Views();

  async::RandomSource random_;
  // Draws the incarnations of the workers.
  async::RandomSource incarnations_;
  const Options options_;
  std::string failure_;
  async::ManualExecutor executor_;
  async::SimulatedClock clock_;
  std::vector<std::unique_ptr<async::MachineClock>> machines_;
  store::HashStore store_{{.clock = &clock_}};
  FunctionRegistry registry_;
  InprocNetwork network_;
  MembershipLog log_{&store_, AgentOptions().job};
  TrackedCalls calls_;
  MemberViews views_;
  std::set<std::pair<std::string, std::string>> blocked_;
  bool store_is_full_ = false;
  // When ExpectConvergence ended all faults; unset since the first random one.
  std::optional<async::MonotonicTime> whole_since_ = clock_.Now();
  // Set while workers start together.
  DeterministicThreads* turns_ = nullptr;
  std::set<Incarnation> left_;
  // Incarnations that ended without leaving.
  std::set<Incarnation> ended_;
  // Nested store calls in flight.
  int num_store_calls_ = 0;
  // Remaining delay allowed for them in this tick.
  absl::Duration store_delay_left_;
  std::vector<Worker> workers_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_TESTING_CLUSTER_SIMULATION_H_
