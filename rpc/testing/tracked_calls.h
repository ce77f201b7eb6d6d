// Calls of a test and their outcomes.

#ifndef HAWSER_RPC_TESTING_TRACKED_CALLS_H_
#define HAWSER_RPC_TESTING_TRACKED_CALLS_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "rpc/identity/worker_info.h"

namespace hawser::rpc {

// Checks calls, each known by a number that it carries, against G1, G2, G4 and
// G5 of docs/rpc/guarantees.md. What is violated comes back in words, empty if
// nothing is. Not thread-safe.
class TrackedCalls {
 public:
  // The number of a call that is about to be made. Only `pinned` may run it;
  // anybody, if that is 0.
  int64_t Begin(Incarnation pinned = {});

  // Same, of a call that another one makes, if that runs.
  int64_t BeginIfRun();

  // The call runs at `worker`.
  std::string Executed(int64_t number, Incarnation worker);

  // The future of the call has completed.
  void Ended(int64_t number, const absl::Status& outcome);

  // OK as long as it has not ended.
  const absl::Status& outcome(int64_t number) { return calls_[number].outcome; }

  // The first violation among all calls, of which none is under way any more.
  std::string Check() const;

 private:
  struct Call {
    Incarnation pinned{};
    bool certain = true;
    int completions = 0;
    int executions = 0;
    absl::Status outcome;
  };

  std::map<int64_t, Call> calls_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_TESTING_TRACKED_CALLS_H_
