// Barrier for a known set of participants, over a store.
#ifndef HAWSER_STORE_BARRIER_H_
#define HAWSER_STORE_BARRIER_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "store/store.h"

namespace hawser::store {

// Each participant arrives once, with a payload, and waits until all have
// arrived. The store keeps one key per participant, "<prefix>/<participant>";
// they are not removed, so each barrier of a job needs its own prefix.
//
// Thread-safe. Calls block; each except Await takes at most `call_timeout`.
// Errors of the store are returned unchanged.
class Barrier {
 public:
  // A participant. The id is part of a key and unique within the barrier.
  // Errors name the participant by its label, such as "rank 3".
  struct Participant {
    std::string id;
    std::string label;
  };

  // `store` must outlive this object.
  Barrier(Store* store, std::string_view prefix, absl::Duration call_timeout);

  // Records that `self` has arrived. Arriving again replaces the payload.
  absl::Status Arrive(const Participant& self, std::string_view payload);

  // Waits until all `participants` have arrived. kDeadlineExceeded after
  // `timeout`, naming the missing participants. A zero timeout reads once, and
  // returns kUnavailable if the store does not reply.
  absl::Status Await(std::span<const Participant> participants,
                     absl::Duration timeout);

  // Returns the indices of `participants` that have not arrived, ascending.
  absl::StatusOr<std::vector<size_t>> Missing(
      std::span<const Participant> participants);

  // Returns the payloads of all `participants`, in the same order.
  // kDeadlineExceeded if one has not arrived.
  absl::StatusOr<std::vector<std::string>> Payloads(
      std::span<const Participant> participants);

 private:
  std::string KeyOf(const Participant& participant) const;
  std::vector<std::string> KeysOf(
      std::span<const Participant> participants) const;

  Store* const store_;
  const std::string prefix_;
  const absl::Duration call_timeout_;
};

}  // namespace hawser::store

#endif  // HAWSER_STORE_BARRIER_H_
