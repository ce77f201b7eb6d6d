// Who belongs to a job, as the store has it.

#ifndef HAWSER_RPC_MEMBERSHIP_LOG_H_
#define HAWSER_RPC_MEMBERSHIP_LOG_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/rpc.pb.h"
#include "rpc/types.h"
#include "store/store.h"

namespace hawser::rpc {

// What a call of the store takes, at most, once a worker has joined: a store
// that is slower keeps no leases, and counts as out of reach.
inline constexpr absl::Duration kStoreCallTimeout = absl::Seconds(3);

// The leases and the numbered events of one job. Keys, below "rpc/<job>/":
//
//   lease/<incarnation>   a count that its owner raises while it lives; nobody
//                         compares it with a clock but on his own
//   events                how many numbers were given out
//   event/<n>             a MembershipEvent, n from 1
//
// Every worker applies the events in the same order and so has the same view,
// if not at the same time. An event costs two writes and one read per worker.
//
// Thread-safe. Calls block; each question to the store ends within
// kStoreCallTimeout, and a look within a second. Errors of the store are
// returned as they are: kUnavailable if a look was not answered.
class MembershipLog {
 public:
  // `store` outlives this.
  MembershipLog(store::Store* store, std::string_view job);

  absl::Status Renew(Incarnation incarnation, uint64_t count);
  absl::Status DropLease(Incarnation incarnation);
  // Empty if there is none.
  absl::StatusOr<std::string> ReadLease(Incarnation incarnation);

  // Adds one event at the end.
  absl::Status Append(const v1::MembershipEvent& event);
  // Numbers given out. kDeadlineExceeded if there never was an event.
  absl::StatusOr<uint64_t> Length();
  // None if the number was given out but nothing is written yet.
  absl::StatusOr<std::optional<v1::MembershipEvent>> Read(uint64_t number);
  // All that left or were lost, from the first event on: one read per event.
  absl::StatusOr<absl::flat_hash_set<Incarnation>> Gone();
  // Takes the number from a writer that does not write; it takes another.
  absl::Status Skip(uint64_t number);

 private:
  std::string LeaseKey(Incarnation incarnation) const;
  std::string EventKey(uint64_t number) const;

  store::Store* const store_;
  const std::string prefix_;
};

// Events by kind.
v1::MembershipEvent JoinedEvent(const WorkerInfo& worker);
v1::MembershipEvent LeftEvent(Incarnation worker);
v1::MembershipEvent LostEvent(Incarnation worker, Incarnation reporter,
                              std::string_view reason);

v1::WorkerRecord ToRecord(const WorkerInfo& worker);
// kInternal if name or rank is not valid.
absl::StatusOr<WorkerInfo> FromRecord(const v1::WorkerRecord& record);

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_MEMBERSHIP_LOG_H_
