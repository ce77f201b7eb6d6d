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
#include "async/future.h"
#include "store/store.h"

namespace hawser::store {

// Each participant arrives once, with a payload. One of them, the coordinator,
// collects the arrivals and completes the barrier with a result; the others
// wait for that. The cost of a participant thus does not grow with their
// number.
//
// The store keeps one key per participant, "<prefix>/<participant>", and
// "<prefix>/done"; they are not removed, so each barrier of a job needs its own
// prefix.
//
// Thread-safe. Calls block for at most `call_timeout`, except those that return
// a future: it has no timeout, and is cancelled to end the wait. Errors of the
// store are returned unchanged.
class Barrier {
 public:
  // A participant. The id is part of a key, unique within the barrier and not
  // "done". Errors name the participant by its label, such as "rank 3".
  struct Participant {
    std::string id;
    std::string label;
  };

  // `store` must outlive this object and its futures.
  Barrier(Store* store, std::string_view prefix, absl::Duration call_timeout);

  // Records that `self` has arrived. Arriving again replaces the payload.
  absl::Status Arrive(const Participant& self, std::string_view payload);

  // For the coordinator: completes with the payloads of all `participants`, in
  // their order, once all have arrived.
  async::Future<std::vector<std::string>> WhenAllArrived(
      std::span<const Participant> participants);
  // For the coordinator: lets the others pass with `result`.
  absl::Status Complete(std::string_view result);

  // For the others: completes with the result of the barrier.
  async::Future<std::string> WhenComplete();

  // Whether the coordinator has completed it.
  absl::StatusOr<bool> IsComplete();

  // Reads once: the labels of those of `participants` that have not arrived.
  // kUnavailable if the store does not reply.
  absl::StatusOr<std::vector<std::string>> Missing(
      std::span<const Participant> participants);
  // Reads once: kDeadlineExceeded, naming those of `participants` that have not
  // arrived, if there are any; kUnavailable if the store does not reply.
  absl::Status CheckAllArrived(std::span<const Participant> participants);

 private:
  std::string KeyOf(std::string_view participant) const;

  Store* const store_;
  const std::string prefix_;
  const absl::Duration call_timeout_;
};

}  // namespace hawser::store

#endif  // HAWSER_STORE_BARRIER_H_
