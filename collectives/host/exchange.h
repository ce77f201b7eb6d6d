// Steps in which the ranks of a group show data to each other.

#ifndef HAWSER_COLLECTIVES_HOST_EXCHANGE_H_
#define HAWSER_COLLECTIVES_HOST_EXCHANGE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "async/clock.h"
#include "collectives/host/region.h"
#include "collectives/host/shared_wait.h"

namespace hawser::collectives {

// One rank's part of the steps of a group. In a step, a rank writes data to its
// slot, shows it, waits for other ranks and reads their slots:
//
//   RETURN_IF_ERROR(exchange.Begin(deadline));
//   ... write exchange.slot() ...
//   exchange.Show();
//   RETURN_IF_ERROR(exchange.WaitForAll(deadline));
//   ... read exchange.slot_of(rank) ...
//
// All ranks take the same number of steps. To show the data of a step means to
// have read all that is needed of the steps before; a rank is at most one step
// ahead of the others, so that two slots a rank suffice.
//
// For one thread at a time. Errors are those of Backend.
class Exchange {
 public:
  // `wait` must outlive this.
  explicit Exchange(SharedWait& wait)
      : wait_(wait), region_(wait.region()), rank_(wait.rank()) {}

  int rank() const { return rank_; }
  int size() const { return region_.layout().size; }
  size_t slot_bytes() const { return region_.layout().slot_bytes; }

  // Begins the next step: waits until no rank reads this one's slot any more.
  absl::Status Begin(async::MonotonicTime deadline) {
    ++step_;
    return WaitForAllOf(step_ - 1, deadline);
  }
  // The same for a rank that shows no data.
  void BeginReading() { ++step_; }
  // Needs all that this rank reads of the steps before to have been read.
  void Show() {
    RankState& state = region_.rank(rank_);
    state.step.store(step_, std::memory_order_release);
    SharedWait::Wake(state.step, state.sleepers);
  }
  absl::Status WaitFor(int rank, async::MonotonicTime deadline) {
    if (HasShown(rank, step_)) return absl::OkStatus();
    return WaitForStep(rank, step_, deadline);
  }
  absl::Status WaitForAll(async::MonotonicTime deadline) {
    return WaitForAllOf(step_, deadline);
  }

  // The slots of the step that was begun last.
  std::byte* slot() const { return region_.slot(rank_, step_); }
  const std::byte* slot_of(int rank) const { return region_.slot(rank, step_); }
  // This rank's slot of the next step, which may be written before that begins
  // once all ranks have shown the present one.
  std::byte* next_slot() const { return region_.slot(rank_, step_ + 1); }

 private:
  bool HasShown(int rank, uint32_t step) const {
    // Steps wrap around.
    return static_cast<int32_t>(
               region_.rank(rank).step.load(std::memory_order_acquire) -
               step) >= 0;
  }
  absl::Status WaitForAllOf(uint32_t step, async::MonotonicTime deadline) {
    for (int rank = 0; rank < size(); ++rank) {
      if (rank == rank_ || HasShown(rank, step)) continue;
      absl::Status status = WaitForStep(rank, step, deadline);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }
  absl::Status WaitForStep(int rank, uint32_t step,
                           async::MonotonicTime deadline);
  // Names the ranks that have not shown the step.
  absl::Status MissingRanks(uint32_t step) const;

  SharedWait& wait_;
  const Region region_;
  const int rank_;
  uint32_t step_ = 0;
};

}  // namespace hawser::collectives

#endif  // HAWSER_COLLECTIVES_HOST_EXCHANGE_H_
