#ifndef HAWSER_RREF_IDS_H_
#define HAWSER_RREF_IDS_H_

#include <atomic>
#include <compare>
#include <cstdint>
#include <string>
#include <utility>

#include "rpc/identity/worker_run.h"

namespace hawser::rref {

// An id that is never used twice in a job: the incarnation of the worker that
// created it, and a counter of that worker.
struct GlobalId {
  rpc::WorkerRun creator;
  uint64_t number = 0;

  // The creator's id and the number, as in "2#17".
  std::string ToString() const;

  friend auto operator<=>(const GlobalId&, const GlobalId&) = default;

  template <class H>
  friend H AbslHashValue(H h, const GlobalId& id) {
    return H::combine(std::move(h), id.creator, id.number);
  }
};

// Id of a value with one owner.
struct RRefId : GlobalId {
  friend auto operator<=>(const RRefId&, const RRefId&) = default;
};

// Id of one copy of a reference. For a reference on its way to its owner, the
// id of the acknowledgement for which the sender waits.
struct ForkId : GlobalId {
  friend auto operator<=>(const ForkId&, const ForkId&) = default;
};

// Generates the ids of one incarnation of a worker. Thread-safe.
class IdSource {
 public:
  explicit IdSource(rpc::WorkerRun creator) : creator_(creator) {}

  RRefId NextRRefId() { return RRefId{Next()}; }
  ForkId NextForkId() { return ForkId{Next()}; }

 private:
  GlobalId Next() {
    return {creator_, next_.fetch_add(1, std::memory_order_relaxed)};
  }

  const rpc::WorkerRun creator_;
  std::atomic<uint64_t> next_{1};
};

}  // namespace hawser::rref

#endif  // HAWSER_RREF_IDS_H_
