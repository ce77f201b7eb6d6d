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
// nobody removes them, so that each barrier of a job needs a prefix of its own.
//
// Thread-safe. Calls block; each but Await takes at most `call_timeout`. Errors
// of the store are returned as they are.
class Barrier {
 public:
  // One that takes part. The id is a part of a key, unique among those of the
  // barrier; errors name the participant by its label: "rank 3".
  struct Participant {
    std::string id;
    std::string label;
  };

  // `store` outlives this.
  Barrier(Store* store, std::string_view prefix, absl::Duration call_timeout);

  // Records that `self` has arrived. Arriving again replaces the payload.
  absl::Status Arrive(const Participant& self, std::string_view payload);

  // Waits until all `participants` have arrived. kDeadlineExceeded after
  // `timeout`, naming those that are missing; with a timeout of zero it looks
  // once, and returns kUnavailable if the store does not answer.
  absl::Status Await(std::span<const Participant> participants,
                     absl::Duration timeout);

  // The indices in `participants` of those that have not arrived, ascending.
  absl::StatusOr<std::vector<size_t>> Missing(
      std::span<const Participant> participants);

  // The payloads of all `participants`, in the same order. They must have
  // arrived: kDeadlineExceeded otherwise.
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
