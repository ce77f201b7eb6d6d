// Directory of a job's workers, kept in a store.

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
#include "store/barrier.h"
#include "store/store.h"

namespace hawser::rpc {

// One worker's view of its job's records. Keys, below "rpc/<job>/":
//
//   group            "static <world size>" or "dynamic", set by the first
//   name/<name>      a WorkerRecord; empty or absent: free
//   rank/<rank>      a WorkerRecord, likewise
//   <barrier>/<incarnation>/...   a barrier; see BarrierOf
//
// Thread-safe. Calls block; timeouts use the machine's clock. Without an
// explicit timeout, the store's own timeout applies to joining, and
// kStoreCallTimeout to later calls to the store. Errors of the store are
// returned unchanged.
class WorkerDirectory {
 public:
  // `store` must outlive this object.
  WorkerDirectory(store::Store* store, std::string_view job);

  // Agrees with the other workers on the kind of group. kFailedPrecondition if
  // theirs differs.
  absl::Status JoinGroup(std::optional<int> world_size);

  // Conditions under which a new worker takes a name or rank from its holder.
  struct ClaimPolicy {
    // The holder's lease lapses if it is not renewed for this long.
    absl::Duration silent_limit = absl::Seconds(3);
    // Same, while `probe` cannot connect to the holder's address.
    absl::Duration unreachable_limit = absl::Milliseconds(1500);
    // Interval at which `probe` runs.
    absl::Duration interval = absl::Milliseconds(500);
    // How long to wait; afterwards a holder in an unknown state keeps its
    // claim.
    absl::Duration patience = absl::ZeroDuration();
    // Sends the holder a heartbeat: kFailedPrecondition if another worker
    // replies at its address, kUnavailable if it cannot be connected to. May be
    // null.
    std::function<absl::Status(const WorkerInfo& holder)> probe = nullptr;
  };

  // Claims name and rank, if necessary from a departed holder: one that was
  // declared lost, whose lease lapsed, or whose address belongs to another
  // worker or refuses connections while its lease stalls. Returns the previous
  // holders. kAlreadyExists names a live holder, which is not affected. If
  // several workers claim one name concurrently, exactly one succeeds.
  absl::StatusOr<std::vector<WorkerInfo>> Register(const WorkerInfo& worker,
                                                   const ClaimPolicy& policy);
  // Key of the record of rank `id`, and its content: nullopt for the value of a
  // free key. kInternal if it is malformed.
  std::string RankKey(WorkerId id) const;
  static absl::StatusOr<std::optional<WorkerInfo>> ParseRecord(
      const std::string& value, const std::string& key);

  // Releases name and rank if this incarnation still holds them.
  absl::Status Withdraw(const WorkerInfo& worker);

  // Returns nullopt if the name or rank is free.
  absl::StatusOr<std::optional<WorkerInfo>> FindByName(
      std::string_view name, absl::Duration timeout = kStoreCallTimeout);
  absl::StatusOr<std::optional<WorkerInfo>> FindById(
      WorkerId id, absl::Duration timeout = kStoreCallTimeout);

  // Barrier of that name for workers of the job, each as its ParticipantOf,
  // with `coordinator`, whose incarnation tells it from barriers of earlier
  // runs of the job.
  store::Barrier BarrierOf(std::string_view name,
                           Incarnation coordinator) const;
  static store::Barrier::Participant ParticipantOf(const WorkerInfo& worker);

 private:
  std::string NameKey(std::string_view name) const;

  // Returns the previous holder, if there was one. The worker `departed` is
  // known to have departed.
  absl::StatusOr<std::optional<WorkerInfo>> Claim(
      const std::string& key, const WorkerInfo& worker, std::string_view what,
      const ClaimPolicy& policy, const std::optional<WorkerInfo>& departed);
  // Returns OK once the holder is known to have departed, kAlreadyExists if it
  // is alive.
  absl::Status AwaitLapse(const WorkerInfo& holder, std::string_view what,
                          const ClaimPolicy& policy);
  absl::StatusOr<std::optional<WorkerInfo>> Find(const std::string& key,
                                                 absl::Duration timeout);

  store::Store* const store_;
  const std::string prefix_;
  MembershipLog log_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_MEMBERSHIP_WORKER_DIRECTORY_H_
