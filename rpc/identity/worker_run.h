// Identity of one run of a worker.

#ifndef HAWSER_RPC_IDENTITY_WORKER_RUN_H_
#define HAWSER_RPC_IDENTITY_WORKER_RUN_H_

#include <compare>
#include <utility>

#include "rpc/identity/worker_info.h"

namespace hawser::rpc {

// One run of a worker: a restarted worker has the same id and another
// incarnation. Key of all that is kept for a worker and ends with its process.
struct WorkerRun {
  WorkerId id;
  Incarnation incarnation{};

  friend constexpr auto operator<=>(const WorkerRun&,
                                    const WorkerRun&) = default;

  template <class H>
  friend H AbslHashValue(H h, const WorkerRun& run) {
    return H::combine(std::move(h), run.id, run.incarnation);
  }
};

inline WorkerRun RunOf(const WorkerInfo& worker) {
  return {worker.id, worker.incarnation};
}

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_IDENTITY_WORKER_RUN_H_
