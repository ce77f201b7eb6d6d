#include "rpc/membership/worker_directory.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/blocking_region.h"
#include "async/future.h"
#include "async/status_macros.h"
#include "proto/rpc.pb.h"
#include "rpc/membership/lease_observer.h"

namespace hawser::rpc {
namespace {

// Observation of a lease starts over after a gap longer than this.
constexpr absl::Duration kMaxGap = absl::Seconds(1);

absl::string_view ToAbsl(std::string_view text) {
  return {text.data(), text.size()};
}

async::MonotonicTime After(absl::Duration delay) {
  return async::AddDelay(std::chrono::steady_clock::now(), delay);
}

absl::Duration Until(async::MonotonicTime deadline) {
  return std::max(
      absl::ZeroDuration(),
      async::TimeBetween(std::chrono::steady_clock::now(), deadline));
}

}  // namespace

WorkerDirectory::WorkerDirectory(store::Store* store, std::string_view job)
    : store_(store),
      prefix_(absl::StrCat("rpc/", ToAbsl(job), "/")),
      log_(store, job) {}

std::string WorkerDirectory::NameKey(std::string_view name) const {
  return absl::StrCat(prefix_, "name/", ToAbsl(name));
}

std::string WorkerDirectory::RankKey(WorkerId id) const {
  return absl::StrCat(prefix_, "rank/", id.value());
}

absl::StatusOr<std::optional<WorkerInfo>> WorkerDirectory::ParseRecord(
    const std::string& value, const std::string& key) {
  if (value.empty()) return std::optional<WorkerInfo>();
  v1::WorkerRecord record;
  absl::StatusOr<WorkerInfo> worker =
      record.ParseFromString(value)
          ? FromRecord(record)
          : absl::StatusOr<WorkerInfo>(absl::InternalError("malformed"));
  if (!worker.ok()) {
    return absl::InternalError(absl::StrCat(
        "key '", key, "' of the store is not a valid worker record"));
  }
  return std::optional<WorkerInfo>(*std::move(worker));
}

absl::Status WorkerDirectory::JoinGroup(std::optional<int> world_size) {
  const std::string kind = world_size.has_value()
                               ? absl::StrCat("static ", *world_size)
                               : std::string("dynamic");
  ASSIGN_OR_RETURN(
      const store::CompareAndSetResult result,
      store_->CompareAndSet(absl::StrCat(prefix_, "group"), "", kind));
  if (!result.swapped && result.value != kind) {
    return absl::FailedPreconditionError(
        absl::StrCat("the workers of one job must agree on the world size: "
                     "this one has \"",
                     kind, "\", the first had \"", result.value, "\""));
  }
  return absl::OkStatus();
}

absl::Status WorkerDirectory::AwaitLapse(const WorkerInfo& holder,
                                         std::string_view what,
                                         const ClaimPolicy& policy) {
  absl::Status lives = absl::AlreadyExistsError(absl::StrCat(
      ToAbsl(what), " is held by ", ToString(holder), " at ", holder.address));
  ASSIGN_OR_RETURN(const std::vector<v1::MembershipEvent> events,
                   log_.ReadAll());
  if (DepartedIn(events).contains(holder.incarnation)) return absl::OkStatus();
  if (policy.patience <= absl::ZeroDuration()) return lives;
  async::BlockingRegion region;
  LeaseObserver leases(std::max(policy.interval * 10, kMaxGap));
  const async::MonotonicTime give_up = After(policy.patience);
  ASSIGN_OR_RETURN(const std::string first, log_.ReadLease(holder.incarnation));
  // Its owner released it.
  if (first.empty()) return absl::OkStatus();
  while (true) {
    ASSIGN_OR_RETURN(const std::string count,
                     log_.ReadLease(holder.incarnation));
    if (count.empty()) return absl::OkStatus();
    if (count != first) return lives;
    const async::MonotonicTime now = std::chrono::steady_clock::now();
    const absl::Duration age = leases.Observe(holder.incarnation, count, now);
    if (age >= policy.silent_limit) return absl::OkStatus();
    if (policy.probe != nullptr) {
      const absl::Status answer = policy.probe(holder);
      if (absl::IsFailedPrecondition(answer) ||
          (absl::IsUnavailable(answer) && age >= policy.unreachable_limit)) {
        return absl::OkStatus();
      }
    }
    if (now >= give_up) return lives;
    const auto changed = log_.WhenLeaseChanged(holder.incarnation, count);
    // A timeout is no error: the lease has not changed.
    (void)changed.WaitFor(policy.interval);
    changed.Cancel();
  }
}

absl::StatusOr<std::optional<WorkerInfo>> WorkerDirectory::Claim(
    const std::string& key, const WorkerInfo& worker, std::string_view what,
    const ClaimPolicy& policy, const std::optional<WorkerInfo>& departed) {
  const std::string record = ToRecord(worker).SerializeAsString();
  std::optional<WorkerInfo> holder;
  std::string expected;
  while (true) {
    ASSIGN_OR_RETURN(const store::CompareAndSetResult result,
                     store_->CompareAndSet(key, expected, record));
    // Already ours if the reply of an earlier attempt was lost.
    if (result.swapped || result.value == record) return holder;
    ASSIGN_OR_RETURN(holder, ParseRecord(result.value, key));
    if (holder.has_value() && holder != departed) {
      RETURN_IF_ERROR(AwaitLapse(*holder, what, policy));
    }
    expected = result.value;
  }
}

absl::StatusOr<std::vector<WorkerInfo>> WorkerDirectory::Register(
    const WorkerInfo& worker, const ClaimPolicy& policy) {
  std::vector<WorkerInfo> replaced;
  ASSIGN_OR_RETURN(std::optional<WorkerInfo> holder,
                   Claim(NameKey(worker.name), worker,
                         absl::StrCat("the name '", worker.name, "'"), policy,
                         std::nullopt));
  if (holder.has_value()) replaced.push_back(*holder);
  absl::StatusOr<std::optional<WorkerInfo>> of_rank =
      Claim(RankKey(worker.id), worker,
            absl::StrCat("rank ", worker.id.value()), policy, holder);
  if (!of_rank.ok()) {
    // Ignored, since the claim's error is returned.
    (void)Withdraw(worker);
    return of_rank.status();
  }
  if (of_rank->has_value() && *of_rank != holder) {
    replaced.push_back(**of_rank);
  }
  return replaced;
}

absl::Status WorkerDirectory::Withdraw(const WorkerInfo& worker) {
  const std::string record = ToRecord(worker).SerializeAsString();
  // If the store does not reply, do not make further calls.
  for (const std::string& key : {NameKey(worker.name), RankKey(worker.id)}) {
    RETURN_IF_ERROR(
        store_->CompareAndSet(key, record, "", kStoreCallTimeout).status());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<WorkerInfo>> WorkerDirectory::Find(
    const std::string& key, absl::Duration timeout) {
  const async::MonotonicTime deadline = After(timeout);
  ASSIGN_OR_RETURN(const bool present, store_->Check({&key, 1}, timeout));
  if (!present) return std::optional<WorkerInfo>();
  ASSIGN_OR_RETURN(const std::string record, store_->Get(key, Until(deadline)));
  return ParseRecord(record, key);
}

absl::StatusOr<std::optional<WorkerInfo>> WorkerDirectory::FindByName(
    std::string_view name, absl::Duration timeout) {
  return Find(NameKey(name), timeout);
}

absl::StatusOr<std::optional<WorkerInfo>> WorkerDirectory::FindById(
    WorkerId id, absl::Duration timeout) {
  return Find(RankKey(id), timeout);
}

store::Barrier WorkerDirectory::BarrierOf(std::string_view name,
                                          Incarnation coordinator) const {
  return store::Barrier(
      store_, absl::StrCat(prefix_, ToAbsl(name), "/", ToString(coordinator)),
      kStoreCallTimeout);
}

store::Barrier::Participant WorkerDirectory::ParticipantOf(
    const WorkerInfo& worker) {
  return {
      .id = absl::StrCat(worker.id.value(), "/", ToString(worker.incarnation)),
      .label = absl::StrCat("rank ", worker.id.value())};
}

}  // namespace hawser::rpc
