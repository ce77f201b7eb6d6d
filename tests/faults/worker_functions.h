// Functions that the workers of fault tests serve (fault_worker.cc), as their
// callers declare them.

#ifndef HAWSER_TESTS_FAULTS_WORKER_FUNCTIONS_H_
#define HAWSER_TESTS_FAULTS_WORKER_FUNCTIONS_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "rpc/functions/function.h"

namespace hawser::tests {

// Above that workers send no message.
inline constexpr int64_t kMaxMessageBytes = int64_t{16} << 20;

// Writes `id` into the worker's ledger; how many entries there are then.
inline constexpr rpc::Function<int64_t(int64_t id)> kApply{"faults.Apply"};
// Same, and answers `milliseconds` later.
inline constexpr rpc::Function<int64_t(int64_t id, int64_t milliseconds)>
    kApplySlowly{"faults.ApplySlowly"};
// Writes `id` into the ledger, and answers when a kHold is cancelled after
// that.
inline constexpr rpc::Function<void(int64_t id)> kApplyAndWait{
    "faults.ApplyAndWait"};
// The ledger.
inline constexpr rpc::Function<std::vector<int64_t>()> kLedger{"faults.Ledger"};

// Answers when it is cancelled, and keeps the time of that.
inline constexpr rpc::Function<void(int64_t id)> kHold{"faults.Hold"};
// Each kHold that was cancelled since this was last asked: its id, and
// nanoseconds of the machine's monotonic clock.
inline constexpr rpc::Function<std::vector<std::pair<int64_t, int64_t>>()>
    kCancelled{"faults.Cancelled"};

// Begins to apply 0, 1, 2, ... at worker `to`, one after the other, until one
// fails; the worker then reports "pushed COUNT CODE MESSAGE". Answers when the
// first was applied.
inline constexpr rpc::Function<void(std::string to)> kPush{"faults.Push"};
// Applies `id` at worker `to`.
inline constexpr rpc::Function<int64_t(std::string to, int64_t id)> kRelay{
    "faults.Relay"};

// Whether it takes the worker of that incarnation for lost.
inline constexpr rpc::Function<bool(uint64_t incarnation)> kTakesForLost{
    "faults.TakesForLost"};

// Throws an exception.
inline constexpr rpc::Function<void()> kThrow{"faults.Throw"};
// Returns so many bytes.
inline constexpr rpc::Function<std::string(int64_t bytes)> kHuge{"faults.Huge"};
// Does not return before it is cancelled, and keeps a thread busy.
inline constexpr rpc::Function<void()> kSpin{"faults.Spin"};

// "descriptors", "threads", "calls": how many there are, this call not counted.
// "begun": how many kHold, kApplySlowly and kApplyAndWait ever began.
inline constexpr rpc::Function<std::map<std::string, int64_t>()> kCensus{
    "faults.Census"};

}  // namespace hawser::tests

#endif  // HAWSER_TESTS_FAULTS_WORKER_FUNCTIONS_H_
