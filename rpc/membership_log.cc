#include "rpc/membership_log.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/status_macros.h"

namespace hawser::rpc {
namespace {

absl::string_view ToAbsl(std::string_view text) {
  return {text.data(), text.size()};
}

// The value now; empty if there is none.
absl::StatusOr<std::string> Look(store::Store& store, const std::string& key) {
  absl::StatusOr<std::string> value = store.Get(key, absl::ZeroDuration());
  if (absl::IsDeadlineExceeded(value.status())) return std::string();
  return value;
}

}  // namespace

MembershipLog::MembershipLog(store::Store* store, std::string_view job)
    : store_(store), prefix_(absl::StrCat("rpc/", ToAbsl(job), "/")) {}

std::string MembershipLog::LeaseKey(Incarnation incarnation) const {
  return absl::StrCat(prefix_, "lease/", ToString(incarnation));
}

std::string MembershipLog::EventKey(uint64_t number) const {
  return absl::StrCat(prefix_, "event/", number);
}

absl::Status MembershipLog::Renew(Incarnation incarnation, uint64_t count) {
  return store_->Set(LeaseKey(incarnation), absl::StrCat(count),
                     kStoreCallTimeout);
}

absl::Status MembershipLog::DropLease(Incarnation incarnation) {
  return store_->Delete(LeaseKey(incarnation), kStoreCallTimeout).status();
}

absl::StatusOr<std::string> MembershipLog::ReadLease(Incarnation incarnation) {
  return Look(*store_, LeaseKey(incarnation));
}

absl::Status MembershipLog::Append(const v1::MembershipEvent& event) {
  const std::string bytes = event.SerializeAsString();
  while (true) {
    ASSIGN_OR_RETURN(
        const int64_t number,
        store_->Add(absl::StrCat(prefix_, "events"), 1, kStoreCallTimeout));
    ASSIGN_OR_RETURN(
        const store::CompareAndSetResult written,
        store_->CompareAndSet(EventKey(static_cast<uint64_t>(number)), "",
                              bytes, kStoreCallTimeout));
    // Otherwise it was skipped: this process was too slow.
    if (written.swapped || written.value == bytes) return absl::OkStatus();
  }
}

absl::StatusOr<uint64_t> MembershipLog::Length() {
  const std::string key = absl::StrCat(prefix_, "events");
  ASSIGN_OR_RETURN(const std::string text,
                   store_->Get(key, absl::ZeroDuration()));
  uint64_t length = 0;
  if (!absl::SimpleAtoi(text, &length)) {
    return absl::InternalError(
        absl::StrCat("key '", key, "' of the store holds no number"));
  }
  return length;
}

absl::StatusOr<std::optional<v1::MembershipEvent>> MembershipLog::Read(
    uint64_t number) {
  ASSIGN_OR_RETURN(const std::string bytes, Look(*store_, EventKey(number)));
  if (bytes.empty()) return std::optional<v1::MembershipEvent>();
  v1::MembershipEvent event;
  if (!event.ParseFromString(bytes)) {
    return absl::InternalError(absl::StrCat("key '", EventKey(number),
                                            "' of the store holds no event"));
  }
  return std::optional<v1::MembershipEvent>(std::move(event));
}

absl::StatusOr<absl::flat_hash_set<Incarnation>> MembershipLog::Gone() {
  absl::flat_hash_set<Incarnation> gone;
  absl::StatusOr<uint64_t> length = Length();
  if (absl::IsDeadlineExceeded(length.status())) return gone;
  RETURN_IF_ERROR(length);
  for (uint64_t number = 1; number <= *length; ++number) {
    ASSIGN_OR_RETURN(const std::optional<v1::MembershipEvent> event,
                     Read(number));
    // What comes after a number that is not written yet is not settled.
    if (!event.has_value()) break;
    if (!event->has_left() && !event->has_lost()) continue;
    const v1::WorkerDeparture& departure =
        event->has_left() ? event->left() : event->lost();
    if (gone.contains(Incarnation{departure.reporter()})) continue;
    gone.insert(Incarnation{departure.incarnation()});
  }
  return gone;
}

absl::Status MembershipLog::Skip(uint64_t number) {
  v1::MembershipEvent event;
  event.set_skipped(true);
  return store_
      ->CompareAndSet(EventKey(number), "", event.SerializeAsString(),
                      kStoreCallTimeout)
      .status();
}

v1::MembershipEvent JoinedEvent(const WorkerInfo& worker) {
  v1::MembershipEvent event;
  *event.mutable_joined() = ToRecord(worker);
  return event;
}

v1::MembershipEvent LeftEvent(Incarnation worker) {
  v1::MembershipEvent event;
  event.mutable_left()->set_incarnation(ToNumber(worker));
  event.mutable_left()->set_reporter(ToNumber(worker));
  return event;
}

v1::MembershipEvent LostEvent(Incarnation worker, Incarnation reporter,
                              std::string_view reason) {
  v1::MembershipEvent event;
  event.mutable_lost()->set_incarnation(ToNumber(worker));
  event.mutable_lost()->set_reporter(ToNumber(reporter));
  event.mutable_lost()->set_reason(std::string(reason));
  return event;
}

v1::WorkerRecord ToRecord(const WorkerInfo& worker) {
  v1::WorkerRecord record;
  record.set_name(worker.name);
  record.set_rank(worker.id.value());
  record.set_incarnation(ToNumber(worker.incarnation));
  record.set_address(worker.address);
  for (const std::string& role : worker.roles) record.add_roles(role);
  return record;
}

absl::StatusOr<WorkerInfo> FromRecord(const v1::WorkerRecord& record) {
  if (!ValidateWorkerName(record.name()).ok() ||
      !WorkerId(record.rank()).valid()) {
    return absl::InternalError("a worker's record has no valid name or rank");
  }
  return WorkerInfo{.name = record.name(),
                    .id = WorkerId(record.rank()),
                    .incarnation = Incarnation{record.incarnation()},
                    .address = record.address(),
                    .roles = {record.roles().begin(), record.roles().end()}};
}

}  // namespace hawser::rpc
