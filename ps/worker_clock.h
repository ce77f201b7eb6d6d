// Membership of a worker in the clocks of tables.

#ifndef HAWSER_PS_WORKER_CLOCK_H_
#define HAWSER_PS_WORKER_CLOCK_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/future.h"
#include "ps/table.h"

namespace hawser::ps {

struct JoinOptions {
  // No clock is complete before that many workers have joined: pulls after the
  // first step wait for them. The largest number that a worker gives counts.
  // Set it to the number of trainers, so that one that starts first does not
  // train alone. 1 to 4,096.
  int num_workers = 1;
};

// Joins a worker to tables that are not asynchronous (ps/storage/
// consistency.h):
//
//   ASSIGN_OR_RETURN(ps::WorkerClock clock,
//                    ps::WorkerClock::Join({users, items}, {.num_workers =
//                    4}));
//   for (const Batch& batch : batches) {
//     ... pull, compute, push, in any thread, through any handle ...
//     RETURN_IF_ERROR(clock.Advance());
//   }
//
// Requests of the agent to these tables have the clock at which they begin. A
// worker that is lost does not hold the others up any longer; nor does one that
// has left: the last copy leaves when it is destroyed.
//
// Thread-safe. A copy is the same membership. May outlive the agent.
class WorkerClock {
 public:
  // Begins at the first clock that is not complete at any server. Errors of
  // rpc::Agent, and
  //
  //   kInvalidArgument     there are no tables; the number is out of range.
  //   kFailedPrecondition  a table is asynchronous.
  //   kAlreadyExists       this worker has joined a table already.
  static absl::StatusOr<WorkerClock> Join(const std::vector<Table>& tables,
                                          const JoinOptions& options = {});
  // The same, without waiting.
  static async::Future<WorkerClock> JoinAsync(const std::vector<Table>& tables,
                                              const JoinOptions& options = {});

  // The number of steps of the training so far.
  int64_t clock() const;

  // Ends the step: later requests belong to the next clock. Sends a message to
  // each server, and does not wait for it, nor for pushes; with pulls under
  // way, the messages follow these.
  //
  // A push or message that fails finally ends this membership, as the servers
  // wait for it in vain: the error comes from the next call, and from the next
  // push. Destroy the object then, and join again to go on.
  absl::Status Advance();

  // Leaves after the last step that was advanced. Completes when the servers
  // have all pushes of the steps before, so that the process may end. Of a
  // synchronous table, pushes since the last Advance are dropped.
  async::Future<void> Leave();

 private:
  class State;

  explicit WorkerClock(std::shared_ptr<State> state)
      : state_(std::move(state)) {}

  std::shared_ptr<State> state_;
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_WORKER_CLOCK_H_
