#include "rpc/membership/group_start.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "async/first_of.h"
#include "async/status_macros.h"
#include "proto/group_start.pb.h"
#include "rpc/membership/membership_log.h"
#include "store/collect_values.h"

namespace hawser::rpc {
namespace {

constexpr size_t kMaxNamedRanks = 64;

}  // namespace

GroupStart::GroupStart(Options options)
    : options_(std::move(options)),
      prefix_(absl::StrCat("rpc/", options_.job, "/start/")),
      log_(options_.store, options_.job) {}

absl::Status GroupStart::Run(async::MonotonicTime deadline) {
  if (options_.on_waiting != nullptr) {
    note_at_ =
        async::AddDelay(std::chrono::steady_clock::now(), options_.note_after);
  }
  return options_.self.id == WorkerId(0) ? Lead(deadline) : Follow(deadline);
}

absl::Status GroupStart::Lead(async::MonotonicTime deadline) {
  Values keys;
  for (int rank = 0; rank < options_.world_size; ++rank) {
    keys.push_back(options_.records->RankKey(WorkerId(rank)));
  }
  while (true) {
    ASSIGN_OR_RETURN(
        const Values records,
        Await(store::CollectValues(options_.store, keys), deadline));
    std::vector<WorkerInfo> workers;
    Values arrivals;
    std::vector<store::WatchedKey> watched;
    for (size_t i = 0; i < keys.size(); ++i) {
      ASSIGN_OR_RETURN(const std::optional<WorkerInfo> worker,
                       WorkerDirectory::ParseRecord(records[i], keys[i]));
      workers.push_back(*worker);
      arrivals.push_back(prefix_ + ArrivalKey(*worker));
      watched.push_back({.key = keys[i], .known = records[i]});
    }
    options_.on_roster(workers);
    RETURN_IF_ERROR(Publish(workers, deadline));
    RETURN_IF_ERROR(Arrive(deadline));
    const auto all = store::CollectValues(options_.store, std::move(arrivals));
    // A worker that died is replaced by another one with the same rank.
    const auto replaced =
        all.ready() ? all : options_.store->WhenChanged(std::move(watched));
    const auto status_of = [](const absl::StatusOr<Values>& values) {
      return values.status();
    };
    const absl::Status status =
        Await(async::FirstOf({all.Then(status_of), replaced.Then(status_of)}),
              deadline);
    const bool started = all.ready();
    all.Cancel();
    replaced.Cancel();
    RETURN_IF_ERROR(status);
    if (started) {
      return Set("started", ToString(options_.self.incarnation), deadline);
    }
  }
}

absl::Status GroupStart::Publish(const std::vector<WorkerInfo>& workers,
                                 async::MonotonicTime deadline) {
  v1::GroupRoster roster;
  for (const WorkerInfo& worker : workers) {
    *roster.add_workers() = ToRecord(worker);
  }
  return Set("roster", roster.SerializeAsString(), deadline);
}

absl::Status GroupStart::Follow(async::MonotonicTime deadline) {
  std::vector<store::WatchedKey> watched = {
      {.key = absl::StrCat(prefix_, "roster"), .known = ""},
      {.key = absl::StrCat(prefix_, "started"), .known = ""}};
  std::vector<WorkerInfo> roster;
  while (true) {
    ASSIGN_OR_RETURN(Values values,
                     Await(options_.store->WhenChanged(watched), deadline));
    if (values.size() != watched.size()) {
      return absl::InternalError("the store's reply to a watch is incomplete");
    }
    if (values[0] != watched[0].known) {
      ASSIGN_OR_RETURN(roster, ParseRoster(values[0]));
      if (IsIn(roster)) {
        options_.on_roster(roster);
        RETURN_IF_ERROR(Arrive(deadline));
      }
    }
    const bool started =
        !roster.empty() && values[1] == ToString(roster.front().incarnation);
    if (started && IsIn(roster)) return absl::OkStatus();
    if (started) {
      // Of this run of the job if its rank 0 lives.
      ASSIGN_OR_RETURN(const std::string lease,
                       log_.ReadLease(roster.front().incarnation));
      if (!lease.empty()) return Arrive(deadline);
    }
    for (size_t i = 0; i < watched.size(); ++i) {
      watched[i].known = std::move(values[i]);
    }
  }
}

absl::StatusOr<std::vector<WorkerInfo>> GroupStart::ParseRoster(
    const std::string& value) const {
  v1::GroupRoster roster;
  if (!roster.ParseFromString(value)) {
    return absl::InternalError(absl::StrCat(
        "key '", prefix_, "roster' of the store is not a valid roster"));
  }
  std::vector<WorkerInfo> workers;
  for (const v1::WorkerRecord& record : roster.workers()) {
    ASSIGN_OR_RETURN(WorkerInfo worker, FromRecord(record));
    workers.push_back(std::move(worker));
  }
  return workers;
}

bool GroupStart::IsIn(const std::vector<WorkerInfo>& roster) const {
  return std::any_of(roster.begin(), roster.end(),
                     [this](const WorkerInfo& worker) {
                       return worker.incarnation == options_.self.incarnation;
                     });
}

std::string GroupStart::ArrivalKey(const WorkerInfo& worker) const {
  return absl::StrCat(worker.id.value(), "/", ToString(worker.incarnation));
}

absl::Status GroupStart::Arrive(async::MonotonicTime deadline) {
  if (arrived_) return absl::OkStatus();
  RETURN_IF_ERROR(Set(ArrivalKey(options_.self), "arrived", deadline));
  arrived_ = true;
  return absl::OkStatus();
}

absl::Status GroupStart::Set(const std::string& key, const std::string& value,
                             async::MonotonicTime deadline) {
  const absl::Duration left =
      async::TimeBetween(std::chrono::steady_clock::now(), deadline);
  return options_.store->Set(prefix_ + key, value,
                             std::max(absl::ZeroDuration(), left));
}

template <class T>
async::Result<T> GroupStart::Await(const async::Future<T>& change,
                                   async::MonotonicTime deadline) {
  // Results are read below, since a timeout is no result of the change.
  if (note_at_ < deadline) {
    (void)change.WaitUntil(note_at_);
    if (!change.ready()) NoteWaiting();
  }
  (void)change.WaitUntil(deadline);
  if (change.ready()) return change.result();
  change.Cancel();
  return MissedDeadline();
}

void GroupStart::NoteWaiting() {
  note_at_ = async::kNever;
  const absl::StatusOr<std::string> missing = MissingRanks();
  if (!missing.ok()) {
    options_.on_waiting("the store to reply");
  } else if (missing->empty()) {
    options_.on_waiting("rank 0 to let the group start");
  } else {
    options_.on_waiting(
        absl::StrCat("ranks ", *missing, " of ", options_.world_size));
  }
}

absl::StatusOr<std::string> GroupStart::MissingRanks() const {
  std::vector<int> missing;
  for (int rank = 0; rank < options_.world_size; ++rank) {
    if (missing.size() == kMaxNamedRanks) break;
    const absl::StatusOr<std::string> record = options_.store->Get(
        options_.records->RankKey(WorkerId(rank)), absl::ZeroDuration());
    if (absl::IsUnavailable(record.status())) return record.status();
    if (!record.ok() || record->empty()) missing.push_back(rank);
  }
  return absl::StrJoin(missing, ", ");
}

absl::Status GroupStart::MissedDeadline() const {
  ASSIGN_OR_RETURN(const std::string missing, MissingRanks());
  if (missing.empty()) {
    return absl::DeadlineExceededError(
        "all ranks have registered, but not all replied to rank 0 in time");
  }
  return absl::DeadlineExceededError(
      absl::StrCat("of ", options_.world_size,
                   " workers these ranks did not start in time: ", missing));
}

}  // namespace hawser::rpc
