// Simulation of the tables and control channels of several workers, without
// agents, for tests.

#ifndef HAWSER_RREF_TESTING_PROTOCOL_SIMULATION_H_
#define HAWSER_RREF_TESTING_PROTOCOL_SIMULATION_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "async/random_source.h"
#include "proto/rref.pb.h"
#include "rpc/identity/worker_info.h"
#include "rpc/identity/worker_run.h"
#include "rref/control_channel.h"
#include "rref/ids.h"
#include "rref/owner_table.h"
#include "rref/user_table.h"

namespace hawser::rref {

// Workers connected by a network that drops, repeats and reorders batches and
// replies, as a seed decides. Workers may die and be restarted; the others
// learn of the loss at random later times. Not thread-safe.
class ProtocolSimulation {
 public:
  // One run of a worker.
  struct Worker {
    explicit Worker(rpc::WorkerRun worker_run);

    const rpc::WorkerRun run;
    IdSource ids;
    OwnerTable owners;
    UserTable users;
    ControlSender sender;
    ControlReceiver receiver;
    // Workers of whose loss it knows.
    std::set<rpc::WorkerRun> lost;
  };

  ProtocolSimulation(int num_workers, uint64_t seed);

  int num_workers() const { return static_cast<int>(workers_.size()); }
  Worker& worker(int i) { return *workers_[i]; }
  // The current run of a worker.
  rpc::WorkerRun RunOf(int i) const { return workers_[i]->run; }
  bool Lives(rpc::WorkerRun run) const { return RunOf(IndexOf(run)) == run; }
  static rpc::WorkerInfo InfoOf(rpc::WorkerRun run);

  // --- Random numbers.

  double Uniform() { return random_.Uniform(); }
  bool Chance(double p) { return random_.Uniform() < p; }
  size_t Below(size_t n) { return random_.Next() % n; }

  // --- Actions of worker `i`.

  // Completes the promises and sends the messages of `actions`.
  void Do(int i, UserTable::Actions actions);
  void Do(int i, OwnerTable::Actions actions);
  void AcceptChild(int i, rpc::WorkerRun parent, ForkId child);
  void RequestFork(int i, rpc::WorkerRun owner, RRefId rref, ForkId fork);
  // Asks the receivers of copies that have not been acknowledged since the last
  // audit.
  void Audit(int i);

  // --- Faults.

  // Ends worker `i`, with all that it holds, and starts another in its place.
  void Restart(int i);

  // --- The network.

  // Runs `event` at a random later time, unless `run` has ended by then.
  void Post(rpc::WorkerRun run, std::function<void()> event);
  // Delivers one pending message, if there is any.
  void DeliverOne();
  // Delivers all messages. Audits detect those that were lost.
  void RunToQuiescence();

 private:
  static int IndexOf(rpc::WorkerRun run) { return run.id.value(); }

  void Lose(int i, rpc::WorkerRun lost);
  void Send(int i, rpc::WorkerRun to,
            const v1::RRefControlOperation& operation);
  void Flush(int i, rpc::WorkerRun to);
  void Attempt(int i, rpc::WorkerRun to, v1::RRefControlRequest batch,
               std::shared_ptr<bool> answered);
  v1::RRefControlResult Apply(int i, rpc::WorkerRun from,
                              const v1::RRefControlOperation& operation,
                              UserTable::Actions& users,
                              OwnerTable::Actions& owners);
  void OnAnswer(int i, rpc::WorkerRun from, const v1::RRefControlRequest& batch,
                const v1::RRefControlReply& reply);

  struct Event {
    rpc::WorkerRun run;
    std::function<void()> action;
  };

  async::RandomSource random_;
  uint64_t last_incarnation_ = 100;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<rpc::WorkerRun> ended_;
  std::vector<Event> network_;
};

}  // namespace hawser::rref

#endif  // HAWSER_RREF_TESTING_PROTOCOL_SIMULATION_H_
