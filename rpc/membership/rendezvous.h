// Directory in which the workers of a job find each other through a store.

#ifndef HAWSER_RPC_MEMBERSHIP_RENDEZVOUS_H_
#define HAWSER_RPC_MEMBERSHIP_RENDEZVOUS_H_

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
//   <stage>/<rank>/<incarnation>   that this worker reached a stage
//
// Thread-safe. Calls block; timeouts are by the machine's clock. Where none is
// given the store's own holds for what a worker does to join, and
// kStoreCallTimeout for a call of the store after that. Errors of the store are
// returned as they are.
class Rendezvous {
 public:
  // `store` outlives this.
  Rendezvous(store::Store* store, std::string_view job);

  // Agrees on the kind of job. kFailedPrecondition if it is another one.
  absl::Status JoinGroup(std::optional<int> world_size);

  // When a holder of a name gives way to a new one.
  struct Takeover {
    // A lease that is not renewed for this long has lapsed.
    absl::Duration silent_limit = absl::Seconds(3);
    // For this long, if `probe` finds nobody at the holder's address.
    absl::Duration unreachable_limit = absl::Milliseconds(1500);
    // How often to look.
    absl::Duration interval = absl::Milliseconds(100);
    // How long to look; a holder about which nothing is known then stays.
    absl::Duration patience = absl::ZeroDuration();
    // Asks the holder for a sign of life: kFailedPrecondition if another
    // answers in its place, kUnavailable if nobody does. May be null.
    std::function<absl::Status(const WorkerInfo& holder)> probe = nullptr;
  };

  // Claims name and rank, also from a holder that is gone: it was declared
  // lost, its lease lapsed, or its address answers as another, or refuses while
  // the lease stands still. Returns the holders they were taken from.
  // kAlreadyExists names a holder that lives; it has noticed nothing. Of
  // several that claim one name at the same time one succeeds.
  absl::StatusOr<std::vector<WorkerInfo>> Register(const WorkerInfo& worker,
                                                   const Takeover& takeover);
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

  // Says that `self` reached `stage`, with a word.
  absl::Status Arrive(std::string_view stage, const WorkerInfo& self,
                      std::string_view word);
  // Waits until all of `workers` have reached it. kDeadlineExceeded names the
  // ranks that are missing; zero looks once, and gives kUnavailable if the
  // store does not answer.
  absl::Status AwaitStage(std::string_view stage,
                          const std::vector<WorkerInfo>& workers,
                          absl::Duration timeout);
  // Those of `workers` that have not reached it.
  absl::StatusOr<std::vector<WorkerInfo>> MissingAtStage(
      std::string_view stage, const std::vector<WorkerInfo>& workers);
  // The words of all `workers`, who have reached it, in the same order.
  absl::StatusOr<std::vector<std::string>> WordsAtStage(
      std::string_view stage, const std::vector<WorkerInfo>& workers);

 private:
  std::string NameKey(std::string_view name) const;
  std::string RankKey(WorkerId id) const;
  std::string StageKey(std::string_view stage, const WorkerInfo& worker) const;

  // Returns the holder it was taken from, if there was one.
  absl::StatusOr<std::optional<WorkerInfo>> Claim(const std::string& key,
                                                  const WorkerInfo& worker,
                                                  std::string_view what,
                                                  const Takeover& takeover);
  // OK once the holder is known to be gone; kAlreadyExists if it lives.
  absl::Status AwaitLapse(const WorkerInfo& holder, std::string_view what,
                          const Takeover& takeover);
  absl::StatusOr<std::optional<WorkerInfo>> Find(const std::string& key,
                                                 absl::Duration timeout);
  std::vector<std::string> StageKeys(
      std::string_view stage, const std::vector<WorkerInfo>& workers) const;
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

#endif  // HAWSER_RPC_MEMBERSHIP_RENDEZVOUS_H_
