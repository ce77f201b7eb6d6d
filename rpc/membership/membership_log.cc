#include "rpc/membership/membership_log.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/status_macros.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/util/delimited_message_util.h"
#include "net/wire_text.h"

namespace hawser::rpc {
namespace {

absl::string_view ToAbsl(std::string_view text) {
  return {text.data(), text.size()};
}

// Returns the current value; empty if there is none.
absl::StatusOr<std::string> ReadNow(store::Store& store,
                                    const std::string& key) {
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

std::string MembershipLog::SegmentKey(uint64_t segment) const {
  return absl::StrCat(prefix_, "members/", segment);
}

absl::Status MembershipLog::Renew(Incarnation incarnation, uint64_t count,
                                  absl::Duration lifetime) {
  return store_->SetLease(LeaseKey(incarnation), absl::StrCat(count),
                          std::max(lifetime, store::kMinLifetime),
                          kStoreCallTimeout);
}

absl::Status MembershipLog::DropLease(Incarnation incarnation) {
  return store_->Delete(LeaseKey(incarnation), kStoreCallTimeout).status();
}

absl::StatusOr<std::string> MembershipLog::ReadLease(Incarnation incarnation) {
  return ReadNow(*store_, LeaseKey(incarnation));
}

async::Future<std::vector<std::string>> MembershipLog::WhenLeaseChanged(
    Incarnation incarnation, std::string_view known) {
  return store_->WhenChanged(
      {{.key = LeaseKey(incarnation), .known = std::string(known)}});
}

async::Future<std::vector<std::string>> MembershipLog::WhenChanged(
    const Part& read, std::span<const Incarnation> leases) {
  std::vector<store::WatchedKey> keys;
  keys.reserve(1 + leases.size());
  keys.push_back({.key = SegmentKey(read.end.segment), .known = read.tail});
  for (const Incarnation incarnation : leases) {
    keys.push_back({.key = LeaseKey(incarnation), .known = std::nullopt});
  }
  return store_->WhenChanged(std::move(keys));
}

absl::StatusOr<uint64_t> MembershipLog::FindLastSegment() {
  uint64_t segment = 1;
  while (true) {
    ASSIGN_OR_RETURN(const std::string bytes,
                     ReadNow(*store_, SegmentKey(segment)));
    if (bytes.size() < kSegmentBytes) return segment;
    ++segment;
  }
}

absl::Status MembershipLog::Append(const v1::MembershipEvent& event) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::util::SerializeDelimitedToZeroCopyStream(event, &stream);
  }
  uint64_t segment = last_segment_.load();
  if (segment == 0) {
    ASSIGN_OR_RETURN(segment, FindLastSegment());
  }
  while (true) {
    ASSIGN_OR_RETURN(
        const int64_t length,
        store_->Append(SegmentKey(segment), bytes, kStoreCallTimeout));
    last_segment_.store(segment);
    if (static_cast<size_t>(length) < kSegmentBytes + bytes.size()) {
      return absl::OkStatus();
    }
    ++segment;
  }
}

absl::StatusOr<MembershipLog::Part> MembershipLog::Read(Position from) {
  ASSIGN_OR_RETURN(std::string bytes,
                   ReadNow(*store_, SegmentKey(from.segment)));
  return Parse(from, std::move(bytes));
}

absl::StatusOr<MembershipLog::Part> MembershipLog::Parse(Position from,
                                                         std::string bytes) {
  const std::string key = SegmentKey(from.segment);
  const auto lost = [](std::string_view lost_key) {
    return absl::DataLossError(absl::StrCat(
        "key '", ToAbsl(lost_key),
        "' of the store is shorter than before: the store was emptied"));
  };
  if (bytes.size() < from.offset) return lost(key);
  if (bytes.empty() && from.segment > 1) {
    // No events yet, provided that the previous segment still exists.
    const std::string full_key = SegmentKey(from.segment - 1);
    ASSIGN_OR_RETURN(const std::string full, ReadNow(*store_, full_key));
    if (full.size() < kSegmentBytes) return lost(full_key);
  }
  Part part;
  part.end = from;
  google::protobuf::io::ArrayInputStream stream(bytes.data(),
                                                static_cast<int>(bytes.size()));
  stream.Skip(static_cast<int>(from.offset));
  while (part.end.offset < std::min(bytes.size(), kSegmentBytes)) {
    v1::MembershipEvent event;
    if (!google::protobuf::util::ParseDelimitedFromZeroCopyStream(
            &event, &stream, nullptr)) {
      return absl::InternalError(absl::StrCat(
          "key '", key, "' of the store has malformed events at byte ",
          part.end.offset));
    }
    part.events.push_back(std::move(event));
    part.end.offset = static_cast<size_t>(stream.ByteCount());
  }
  if (part.end.offset >= kSegmentBytes) {
    part.end = {.segment = from.segment + 1, .offset = 0};
    part.more = true;
  } else {
    part.tail = std::move(bytes);
  }
  last_segment_.store(part.end.segment);
  return part;
}

absl::StatusOr<std::vector<v1::MembershipEvent>> MembershipLog::ReadAll() {
  std::vector<v1::MembershipEvent> events;
  Position position;
  bool more = true;
  while (more) {
    ASSIGN_OR_RETURN(Part part, Read(position));
    std::move(part.events.begin(), part.events.end(),
              std::back_inserter(events));
    position = part.end;
    more = part.more;
  }
  return events;
}

absl::flat_hash_set<Incarnation> DepartedIn(
    const std::vector<v1::MembershipEvent>& events) {
  absl::flat_hash_set<Incarnation> departed;
  for (const v1::MembershipEvent& event : events) {
    if (!event.has_left() && !event.has_lost()) continue;
    const v1::WorkerDeparture& departure =
        event.has_left() ? event.left() : event.lost();
    if (departed.contains(Incarnation{departure.reporter()})) continue;
    departed.insert(Incarnation{departure.incarnation()});
  }
  return departed;
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
  event.mutable_lost()->set_reason(net::ToErrorText(reason));
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
    return absl::InternalError("a worker's record has an invalid name or rank");
  }
  return WorkerInfo{.name = record.name(),
                    .id = WorkerId(record.rank()),
                    .incarnation = Incarnation{record.incarnation()},
                    .address = record.address(),
                    .roles = {record.roles().begin(), record.roles().end()}};
}

}  // namespace hawser::rpc
