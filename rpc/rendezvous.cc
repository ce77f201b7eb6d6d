#include "rpc/rendezvous.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "async/status_macros.h"
#include "proto/rpc.pb.h"

namespace hawser::rpc {
namespace {

// How long a wait goes on before the interrupt is looked at.
constexpr absl::Duration kSlice = absl::Milliseconds(200);

absl::string_view ToAbsl(std::string_view text) {
  return {text.data(), text.size()};
}

std::string ToRecord(const WorkerInfo& worker) {
  v1::WorkerRecord record;
  record.set_name(worker.name);
  record.set_rank(worker.id.value());
  record.set_incarnation(ToNumber(worker.incarnation));
  record.set_address(worker.address);
  return record.SerializeAsString();
}

absl::StatusOr<WorkerInfo> FromRecord(const std::string& bytes,
                                      const std::string& key) {
  v1::WorkerRecord record;
  if (!record.ParseFromString(bytes) ||
      !ValidateWorkerName(record.name()).ok() ||
      !WorkerId(record.rank()).valid()) {
    return absl::InternalError(
        absl::StrCat("key '", key, "' of the store holds no worker's record"));
  }
  return WorkerInfo{.name = record.name(),
                    .id = WorkerId(record.rank()),
                    .incarnation = Incarnation{record.incarnation()},
                    .address = record.address()};
}

absl::Duration Until(async::MonotonicTime deadline) {
  return std::max(
      absl::ZeroDuration(),
      async::TimeBetween(std::chrono::steady_clock::now(), deadline));
}

absl::Status NoInterrupt() { return absl::OkStatus(); }

}  // namespace

Rendezvous::Rendezvous(store::Store* store, std::string_view job)
    : store_(store), prefix_(absl::StrCat("rpc/", ToAbsl(job), "/")) {}

std::string Rendezvous::NameKey(std::string_view name) const {
  return absl::StrCat(prefix_, "name/", ToAbsl(name));
}

std::string Rendezvous::RankKey(WorkerId id) const {
  return absl::StrCat(prefix_, "rank/", id.value());
}

std::string Rendezvous::StageKey(std::string_view stage,
                                 const WorkerInfo& worker) const {
  return absl::StrCat(prefix_, ToAbsl(stage), "/", worker.id.value(), "/",
                      ToString(worker.incarnation));
}

absl::Status Rendezvous::JoinGroup(std::optional<int> world_size) {
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

absl::Status Rendezvous::Claim(const std::string& key,
                               const std::string& record,
                               std::string_view what) {
  ASSIGN_OR_RETURN(const store::CompareAndSetResult result,
                   store_->CompareAndSet(key, "", record));
  // Already ours if an earlier attempt's answer was lost.
  if (result.swapped || result.value == record) return absl::OkStatus();
  ASSIGN_OR_RETURN(const WorkerInfo holder, FromRecord(result.value, key));
  return absl::AlreadyExistsError(absl::StrCat(
      ToAbsl(what), " is held by ", ToString(holder), " at ", holder.address));
}

absl::Status Rendezvous::Register(const WorkerInfo& worker) {
  const std::string record = ToRecord(worker);
  RETURN_IF_ERROR(Claim(NameKey(worker.name), record,
                        absl::StrCat("the name '", worker.name, "'")));
  absl::Status status = Claim(RankKey(worker.id), record,
                              absl::StrCat("rank ", worker.id.value()));
  if (!status.ok()) {
    // The claim's error is what counts.
    (void)store_->Delete(NameKey(worker.name));
  }
  return status;
}

absl::Status Rendezvous::Withdraw(const WorkerInfo& worker) {
  absl::Status status;
  for (const std::string& key : {NameKey(worker.name), RankKey(worker.id)}) {
    absl::StatusOr<std::optional<WorkerInfo>> holder = Find(key);
    if (!holder.ok()) {
      status.Update(holder.status());
    } else if (holder->has_value() &&
               (*holder)->incarnation == worker.incarnation) {
      status.Update(store_->Delete(key).status());
    }
  }
  return status;
}

absl::StatusOr<std::optional<WorkerInfo>> Rendezvous::Find(
    const std::string& key) {
  absl::StatusOr<std::string> record = store_->Get(key, absl::ZeroDuration());
  if (absl::IsDeadlineExceeded(record.status())) {
    ASSIGN_OR_RETURN(const bool present, store_->Check({&key, 1}));
    if (!present) return std::optional<WorkerInfo>();
    record = store_->Get(key);
  }
  RETURN_IF_ERROR(record);
  ASSIGN_OR_RETURN(WorkerInfo worker, FromRecord(*record, key));
  return std::optional<WorkerInfo>(std::move(worker));
}

absl::StatusOr<std::optional<WorkerInfo>> Rendezvous::FindByName(
    std::string_view name) {
  return Find(NameKey(name));
}

absl::StatusOr<std::optional<WorkerInfo>> Rendezvous::FindById(WorkerId id) {
  return Find(RankKey(id));
}

absl::Status Rendezvous::Await(const std::vector<std::string>& keys,
                               const std::vector<int>& ranks,
                               async::MonotonicTime deadline,
                               const std::function<absl::Status()>& interrupt) {
  while (true) {
    const absl::Duration left = Until(deadline);
    absl::Status status = store_->Wait(keys, std::min(kSlice, left));
    if (status.ok() || !absl::IsDeadlineExceeded(status)) return status;
    RETURN_IF_ERROR(interrupt());
    if (left > absl::ZeroDuration()) continue;
    std::vector<int> missing;
    for (size_t i = 0; i < keys.size(); ++i) {
      absl::StatusOr<bool> present = store_->Check({&keys[i], 1});
      if (!present.ok() || !*present) missing.push_back(ranks[i]);
    }
    return absl::DeadlineExceededError(absl::StrCat(
        "of ", keys.size(), " workers these ranks did not come in time: ",
        absl::StrJoin(missing, ", ")));
  }
}

absl::StatusOr<std::vector<WorkerInfo>> Rendezvous::AwaitWorkers(
    int world_size, async::MonotonicTime deadline) {
  std::vector<std::string> keys;
  std::vector<int> ranks;
  for (int rank = 0; rank < world_size; ++rank) {
    keys.push_back(RankKey(WorkerId(rank)));
    ranks.push_back(rank);
  }
  RETURN_IF_ERROR(Await(keys, ranks, deadline, NoInterrupt));
  std::vector<WorkerInfo> workers;
  for (const std::string& key : keys) {
    ASSIGN_OR_RETURN(const std::string record,
                     store_->Get(key, Until(deadline)));
    ASSIGN_OR_RETURN(WorkerInfo worker, FromRecord(record, key));
    workers.push_back(std::move(worker));
  }
  return workers;
}

absl::StatusOr<std::vector<std::string>> Rendezvous::Meet(
    std::string_view stage, const WorkerInfo& self, std::string_view word,
    const std::vector<WorkerInfo>& workers, async::MonotonicTime deadline,
    const std::function<absl::Status()>& interrupt) {
  RETURN_IF_ERROR(store_->Set(StageKey(stage, self), word));
  std::vector<std::string> keys;
  std::vector<int> ranks;
  for (const WorkerInfo& worker : workers) {
    keys.push_back(StageKey(stage, worker));
    ranks.push_back(worker.id.value());
  }
  RETURN_IF_ERROR(Await(keys, ranks, deadline, interrupt));
  std::vector<std::string> words;
  for (const std::string& key : keys) {
    ASSIGN_OR_RETURN(std::string other, store_->Get(key, Until(deadline)));
    words.push_back(std::move(other));
  }
  return words;
}

}  // namespace hawser::rpc
