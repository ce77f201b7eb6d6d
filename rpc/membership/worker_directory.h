// Directory in which the workers of a job find each other through a store.

#ifndef HAWSER_RPC_MEMBERSHIP_WORKER_DIRECTORY_H_
#define HAWSER_RPC_MEMBERSHIP_WORKER_DIRECTORY_H_

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "rpc/identity/worker_info.h"
#include "rpc/membership/membership_log.h"
#include "store/store.h"

namespace hawser::rpc {

// One worker's view of its job's records. Keys, below "rpc/<job>/":
//
//   group            "static <world size>" or "dynamic", set by the first
//   name/<name>      a WorkerRecord; empty or absent: free
//   rank/<rank>      the same
//   <barrier>/<rank>/<incarnation>   that this worker arrived at a barrier
//
// Thread-safe. Calls block; timeouts are by the machine's clock. Where none is
// given the store's own holds for what a worker does to join, and
// kStoreCallTimeout for a call of the store after that. Errors of the store are
// returned as they are.
class WorkerDirectory {
 public:
  // `store` outlives this.
  WorkerDirectory(store::Store* store, std::string_view job);

  // Agrees on the kind of job. kFailedPrecondition if it is another one.
  absl::Status JoinGroup(std::optional<int> world_size);

  // When a holder of a name loses it to a new one.
  struct ClaimPolicy {
    // A lease that is not renewed for this long has lapsed.
    absl::Duration silent_limit = absl::Seconds(3);
    // For this long, if `probe` finds nobody at the holder's address.
    absl::Duration unreachable_limit = absl::Milliseconds(1500);
    // How often to look.
    absl::Duration interval = absl::Milliseconds(100);
    // How long to look; a holder about which nothing is known then stays.
    absl::Duration patience = absl::ZeroDuration();
    // Asks the holder for a heartbeat reply: kFailedPrecondition if another
    // answers in its place, kUnavailable if nobody does. May be null.
    std::function<absl::Status(const WorkerInfo& holder)> probe = nullptr;
  };

  // Claims name and rank, also from a holder that has departed: it was declared
  // lost, its lease lapsed, or its address answers as another, or refuses while
  // the lease stalls. Returns the holders they were taken from.
  // kAlreadyExists names a holder that lives; it has noticed nothing. Of
  // several that claim one name at the same time one succeeds.
  absl::StatusOr<std::vector<WorkerInfo>> Register(const WorkerInfo& worker,
                                                   const ClaimPolicy& policy);
  // Gives them back, if they are still this incarnation's.
  absl::Status Withdraw(const WorkerInfo& worker);

  // Waits for the records of ranks 0 to `world_size` - 1. kDeadlineExceeded
  // names the ranks that are missing.
  absl::StatusOr<std::vector<WorkerInfo>> AwaitWorkers(int world_size,
                                                       absl::Duration timeout);

  // None if nobody has the name or rank now.
  absl::StatusOr<std::optional<WorkerInfo>> FindByName(
      std::string_view name, absl::Duration timeout = kStoreCallTimeout);
  absl::StatusOr<std::optional<WorkerInfo>> FindById(
      WorkerId id, absl::Duration timeout = kStoreCallTimeout);

  // Arrives at `barrier` with a payload.
  absl::Status Arrive(std::string_view barrier, const WorkerInfo& self,
                      std::string_view payload);
  // Waits until all of `workers` have arrived at it. kDeadlineExceeded names
  // the ranks that are missing; zero looks once, and gives kUnavailable if the
  // store does not answer.
  absl::Status AwaitBarrier(std::string_view barrier,
                            const std::vector<WorkerInfo>& workers,
                            absl::Duration timeout);
  // Those of `workers` that have not arrived at it.
  absl::StatusOr<std::vector<WorkerInfo>> MissingAtBarrier(
      std::string_view barrier, const std::vector<WorkerInfo>& workers);
  // The payloads of all `workers`, which have arrived at it, in the same order.
  absl::StatusOr<std::vector<std::string>> BarrierPayloads(
      std::string_view barrier, const std::vector<WorkerInfo>& workers);

 private:
  std::string NameKey(std::string_view name) const;
  std::string RankKey(WorkerId id) const;
  std::string BarrierKey(std::string_view barrier,
                         const WorkerInfo& worker) const;

  // Returns the holder it was taken from, if there was one.
  absl::StatusOr<std::optional<WorkerInfo>> Claim(const std::string& key,
                                                  const WorkerInfo& worker,
                                                  std::string_view what,
                                                  const ClaimPolicy& policy);
  // OK once the holder is known to have departed; kAlreadyExists if it lives.
  absl::Status AwaitLapse(const WorkerInfo& holder, std::string_view what,
                          const ClaimPolicy& policy);
  absl::StatusOr<std::optional<WorkerInfo>> Find(const std::string& key,
                                                 absl::Duration timeout);
  std::vector<std::string> BarrierKeys(
      std::string_view barrier, const std::vector<WorkerInfo>& workers) const;
  absl::StatusOr<WorkerInfo> AwaitRecord(const std::string& key, int rank,
                                         async::MonotonicTime deadline);
  // Which of `keys` are not there.
  absl::StatusOr<std::vector<size_t>> Missing(
      const std::vector<std::string>& keys);
  // Waits for all `keys`; `keys[i]` is rank `ranks[i]`'s.
  absl::Status Await(const std::vector<std::string>& keys,
                     const std::vector<int>& ranks,
                     async::MonotonicTime deadline);

  store::Store* const store_;
  const std::string prefix_;
  MembershipLog log_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_MEMBERSHIP_WORKER_DIRECTORY_H_
