// Declarations of the functions that fault_worker.cc serves.

#ifndef HAWSER_TESTS_FAULTS_WORKER_FUNCTIONS_H_
#define HAWSER_TESTS_FAULTS_WORKER_FUNCTIONS_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "rpc/functions/function.h"

namespace hawser::tests {

// Limit on messages of these workers.
inline constexpr int64_t kMaxMessageBytes = int64_t{16} << 20;

// Writes `id` to the worker's ledger. Returns its number of entries.
inline constexpr rpc::Function<int64_t(int64_t id)> kApply{"faults.Apply"};
// Like kApply, but replies `milliseconds` later.
inline constexpr rpc::Function<int64_t(int64_t id, int64_t milliseconds)>
    kApplySlowly{"faults.ApplySlowly"};
// Writes `id` to the ledger. Replies when a kHold is cancelled later.
inline constexpr rpc::Function<void(int64_t id)> kApplyAndWait{
    "faults.ApplyAndWait"};
// Returns the ledger.
inline constexpr rpc::Function<std::vector<int64_t>()> kLedger{"faults.Ledger"};

// Runs until it is cancelled, and records the time of cancellation.
inline constexpr rpc::Function<void(int64_t id)> kHold{"faults.Hold"};
// Returns the kHold calls that were cancelled since the previous call of this:
// ids, and times in nanoseconds of the machine's monotonic clock.
inline constexpr rpc::Function<std::vector<std::pair<int64_t, int64_t>>()>
    kCancelled{"faults.Cancelled"};

// Starts to call kApply with 0, 1, 2, ... on worker `to`, one call at a time,
// until one fails; the worker then reports "pushed COUNT CODE MESSAGE". After
// kUnavailable it makes one more call, whose error it reports: the connection
// of the first may have broken. Replies after the first call.
inline constexpr rpc::Function<void(std::string to)> kPush{"faults.Push"};
// Calls kApply with `id` on worker `to`.
inline constexpr rpc::Function<int64_t(std::string to, int64_t id)> kRelay{
    "faults.Relay"};

// Returns true if the worker has declared this incarnation lost.
inline constexpr rpc::Function<bool(uint64_t incarnation)> kTakesForLost{
    "faults.TakesForLost"};

// Throws an exception.
inline constexpr rpc::Function<void()> kThrow{"faults.Throw"};
// Returns a string of `bytes` bytes.
inline constexpr rpc::Function<std::string(int64_t bytes)> kHuge{"faults.Huge"};
// Keeps a thread busy until it is cancelled.
inline constexpr rpc::Function<void()> kSpin{"faults.Spin"};

// Returns counts. "descriptors", "threads", "calls": the current numbers,
// without this call. "begun": all kHold, kApplySlowly and kApplyAndWait started
// so far.
inline constexpr rpc::Function<std::map<std::string, int64_t>()> kCensus{
    "faults.Census"};

}  // namespace hawser::tests

#endif  // HAWSER_TESTS_FAULTS_WORKER_FUNCTIONS_H_
