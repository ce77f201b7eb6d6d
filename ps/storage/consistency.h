// Consistency of a table between the workers that train it.

#ifndef HAWSER_PS_STORAGE_CONSISTENCY_H_
#define HAWSER_PS_STORAGE_CONSISTENCY_H_

#include <cstdint>

namespace hawser::ps {

// Which pushes of other workers a pull sees. Unless it is asynchronous, workers
// join the table's clock and advance it after each step (ps/worker_clock.h). A
// plain value.
struct Consistency {
  enum class Mode {
    kAsynchronous,
    kBoundedStaleness,
    kSynchronous,
  };

  // A pull sees the pushes that were applied before it.
  static Consistency Asynchronous() { return {}; }
  // A pull at clock c waits until all workers have reached clock c - `bound`:
  // it sees all pushes of earlier clocks, all of its own worker's earlier
  // clocks, and maybe more. Stale synchronous parallel: Ho et al., NIPS 2013.
  //
  //   bound  0 to 1,000,000 clocks.
  static Consistency BoundedStaleness(int64_t bound) {
    return {Mode::kBoundedStaleness, bound};
  }
  // A pull at clock c sees the pushes of the clocks before c and no others.
  // Those of a clock are applied once all workers have completed it, in the
  // order of the workers' names: results do not depend on timing. Bulk
  // synchronous parallel.
  static Consistency Synchronous() { return {Mode::kSynchronous, 0}; }

  // Whether workers have a clock.
  bool clocked() const { return mode != Mode::kAsynchronous; }

  Mode mode = Mode::kAsynchronous;
  int64_t bound = 0;

  friend bool operator==(const Consistency&, const Consistency&) = default;
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_STORAGE_CONSISTENCY_H_
