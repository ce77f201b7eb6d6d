// Tracker of a test's calls and their outcomes.

#ifndef HAWSER_RPC_TESTING_TRACKED_CALLS_H_
#define HAWSER_RPC_TESTING_TRACKED_CALLS_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "rpc/identity/worker_info.h"

namespace hawser::rpc {

// Checks calls, identified by a number that they carry, against G1, G2, G4 and
// G5 of docs/rpc/guarantees.md. Violations are returned as text, empty if there
// is none. Not thread-safe.
class TrackedCalls {
 public:
  // Returns the number of a call about to be made. Only `pinned` may run it;
  // any worker if that is 0.
  int64_t Begin(Incarnation pinned = {});

  // Same, for a call made by another call, if that runs.
  int64_t BeginIfRun();

  // Records that the call runs at `worker`.
  std::string Executed(int64_t number, Incarnation worker);

  // Records that the future of the call has completed.
  void Ended(int64_t number, const absl::Status& outcome);

  // OK until the call has ended.
  const absl::Status& outcome(int64_t number) { return calls_[number].outcome; }

  // Returns the first violation among all calls; none may be in flight.
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
