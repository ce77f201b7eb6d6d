// Membership of a job as recorded in the store.

#ifndef HAWSER_RPC_MEMBERSHIP_MEMBERSHIP_LOG_H_
#define HAWSER_RPC_MEMBERSHIP_MEMBERSHIP_LOG_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/future.h"
#include "proto/rpc.pb.h"
#include "rpc/identity/worker_info.h"
#include "store/store.h"

namespace hawser::rpc {

// Timeout of calls to the store once a worker has joined. A slower store cannot
// maintain leases and counts as unreachable.
inline constexpr absl::Duration kStoreCallTimeout = absl::Seconds(3);

// The leases and the events of one job. Keys, below "rpc/<job>/":
//
//   lease/<incarnation>   a lease of the store that its owner renews while it
//                         lives; a count of the renewals
//   members/<n>           a segment of the log of events, n from 1:
//                         MembershipEvents, each after its length as a varint
//
// Events are appended to the last segment. Events that start at kSegmentBytes
// of a segment or later are ignored, and their writers append them to the next
// segment. So all workers apply the events in the same order and reach the same
// view, though not at the same time. An event costs one write, and one reply to
// the watch of each worker. A new worker reads the log by segments.
//
// Thread-safe. Calls block; each call to the store takes at most
// kStoreCallTimeout, and a read with timeout zero at most one second. Errors of
// the store are returned unchanged, such as kUnavailable if a read got no
// reply. Errors of the content:
//   kInternal   a segment is malformed; names the key.
//   kDataLoss   a segment is shorter than before: the store was emptied.
class MembershipLog {
 public:
  static constexpr size_t kSegmentBytes = 4096;

  // Position up to which the log was read; the beginning by default.
  struct Position {
    uint64_t segment = 1;
    // In bytes.
    size_t offset = 0;
    bool operator==(const Position&) const = default;
  };

  struct Part {
    std::vector<v1::MembershipEvent> events;
    Position end;
    // Whether the segment was full, so that there may be a next one.
    bool more = false;
    // The bytes of the segment at `end`; for WhenChanged.
    std::string tail;
  };

  // `store` must outlive this object.
  MembershipLog(store::Store* store, std::string_view job);

  // Sets or renews the lease of a worker, which lapses after `lifetime`, or
  // store::kMinLifetime if that is longer.
  absl::Status Renew(Incarnation incarnation, uint64_t count,
                     absl::Duration lifetime);
  absl::Status DropLease(Incarnation incarnation);
  // Returns the lease's count; empty if there is none.
  absl::StatusOr<std::string> ReadLease(Incarnation incarnation);
  // Completes when the lease does not have the count `known` any more.
  async::Future<std::vector<std::string>> WhenLeaseChanged(
      Incarnation incarnation, std::string_view known);

  // Appends one event. After an error it may or may not have been appended; a
  // duplicate event counts once.
  absl::Status Append(const v1::MembershipEvent& event);
  // Reads the events of one segment from `from` on.
  absl::StatusOr<Part> Read(Position from);
  // As Read, from the `bytes` of the segment at `from`.
  absl::StatusOr<Part> Parse(Position from, std::string bytes);
  // Completes when the segment at `read.end` has other bytes than `read.tail`,
  // or when one of `leases` has lapsed or been dropped. Returns the bytes of
  // the segment, and then the count of each lease, empty if there is none. As
  // Store::WhenChanged.
  async::Future<std::vector<std::string>> WhenChanged(
      const Part& read, std::span<const Incarnation> leases);
  // Reads all events.
  absl::StatusOr<std::vector<v1::MembershipEvent>> ReadAll();

 private:
  std::string LeaseKey(Incarnation incarnation) const;
  std::string SegmentKey(uint64_t segment) const;
  // Returns the first segment that is not full.
  absl::StatusOr<uint64_t> FindLastSegment();

  store::Store* const store_;
  const std::string prefix_;
  // The last known segment; 0 if none is known.
  std::atomic<uint64_t> last_segment_{0};
};

// Returns the workers that left or were lost according to `events`, which start
// at the first event.
absl::flat_hash_set<Incarnation> DepartedIn(
    const std::vector<v1::MembershipEvent>& events);

// Constructors of events.
v1::MembershipEvent JoinedEvent(const WorkerInfo& worker);
v1::MembershipEvent LeftEvent(Incarnation worker);
v1::MembershipEvent LostEvent(Incarnation worker, Incarnation reporter,
                              std::string_view reason);

v1::WorkerRecord ToRecord(const WorkerInfo& worker);
// kInternal if name or rank is invalid.
absl::StatusOr<WorkerInfo> FromRecord(const v1::WorkerRecord& record);

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_MEMBERSHIP_MEMBERSHIP_LOG_H_
