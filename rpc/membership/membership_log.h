// Membership of a job as recorded in the store.

#ifndef HAWSER_RPC_MEMBERSHIP_MEMBERSHIP_LOG_H_
#define HAWSER_RPC_MEMBERSHIP_MEMBERSHIP_LOG_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/rpc.pb.h"
#include "rpc/identity/worker_info.h"
#include "store/store.h"

namespace hawser::rpc {

// What a call of the store takes, at most, once a worker has joined: a store
// that is slower keeps no leases, and counts as out of reach.
inline constexpr absl::Duration kStoreCallTimeout = absl::Seconds(3);

// The leases and the events of one job. Keys, below "rpc/<job>/":
//
//   lease/<incarnation>   a count that its owner raises while it lives; nobody
//                         compares it with a clock but on his own
//   members/<n>           a segment of the log of events, n from 1:
//                         MembershipEvents, each after its length as a varint
//
// Events are appended to the last segment. Those that begin at kSegmentBytes
// of a segment or later do not count: their writers append them to the next. So
// every worker applies the events in the same order and has the same view, if
// not at the same time. An event costs one write, and its bytes in what a
// worker reads per round until its segment is full; a newcomer reads the log
// by segments.
//
// Thread-safe. Calls block; each question to the store ends within
// kStoreCallTimeout, and a look within a second. Errors of the store are
// returned as they are: kUnavailable if a look was not answered. Those of what
// it holds:
//   kInternal   a segment that holds anything else; names the key.
//   kDataLoss   less than was read before: the store was emptied.
class MembershipLog {
 public:
  static constexpr size_t kSegmentBytes = 4096;

  // Up to where the log was read; its beginning by default.
  struct Position {
    uint64_t segment = 1;
    // In bytes.
    size_t offset = 0;
  };

  struct Part {
    std::vector<v1::MembershipEvent> events;
    Position end;
    // Whether the segment was read to its end, so that there may be more.
    bool more = false;
  };

  // `store` outlives this.
  MembershipLog(store::Store* store, std::string_view job);

  absl::Status Renew(Incarnation incarnation, uint64_t count);
  absl::Status DropLease(Incarnation incarnation);
  // Empty if there is none.
  absl::StatusOr<std::string> ReadLease(Incarnation incarnation);

  // Adds one event at the end. Of an error it is not known whether it did; an
  // event that is there twice counts once.
  absl::Status Append(const v1::MembershipEvent& event);
  // Those of one segment from `from` on.
  absl::StatusOr<Part> Read(Position from);
  // All there are.
  absl::StatusOr<std::vector<v1::MembershipEvent>> ReadAll();

 private:
  std::string LeaseKey(Incarnation incarnation) const;
  std::string SegmentKey(uint64_t segment) const;
  // The first that is not full.
  absl::StatusOr<uint64_t> FindLastSegment();

  store::Store* const store_;
  const std::string prefix_;
  // The last that is known of; 0 if none is.
  std::atomic<uint64_t> last_segment_{0};
};

// All that left or were lost, of `events` from the first on.
absl::flat_hash_set<Incarnation> DepartedIn(
    const std::vector<v1::MembershipEvent>& events);

// Events by kind.
v1::MembershipEvent JoinedEvent(const WorkerInfo& worker);
v1::MembershipEvent LeftEvent(Incarnation worker);
v1::MembershipEvent LostEvent(Incarnation worker, Incarnation reporter,
                              std::string_view reason);

v1::WorkerRecord ToRecord(const WorkerInfo& worker);
// kInternal if name or rank is not valid.
absl::StatusOr<WorkerInfo> FromRecord(const v1::WorkerRecord& record);

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_MEMBERSHIP_MEMBERSHIP_LOG_H_
