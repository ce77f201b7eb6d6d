// Transfers that a collective waits for together.

#ifndef HAWSER_COLLECTIVES_GLOO_STEP_H_
#define HAWSER_COLLECTIVES_GLOO_STEP_H_

#include <deque>
#include <span>

#include "absl/status/status.h"
#include "async/clock.h"
#include "collectives/backend.h"
#include "collectives/gloo/mesh.h"
#include "collectives/gloo/transfer.h"

namespace hawser::collectives {

// Sends and receives to and from other ranks that may run at the same time.
// Transfers of no bytes are left out. All ranks begin the transfers between two
// of them in the same order. For one thread.
class Step {
 public:
  // `ranks` are those of the mesh that take part, of which Send and Receive
  // take the position. They and `mesh` must outlive this.
  Step(Mesh& mesh, std::span<const int> ranks, async::MonotonicTime deadline)
      : mesh_(mesh), ranks_(ranks), deadline_(deadline) {}

  // The memory must stay until the step is destroyed.
  void Send(int to, ConstBytes data);
  void Receive(int from, MutableBytes data);
  // Waits for all transfers. After an error, which fails the mesh:
  // kDeadlineExceeded names the ranks of those that have not completed.
  absl::Status Wait();

 private:
  absl::Status FailLate();

  Mesh& mesh_;
  const std::span<const int> ranks_;
  const async::MonotonicTime deadline_;
  std::deque<Transfer> transfers_;
};

}  // namespace hawser::collectives

#endif  // HAWSER_COLLECTIVES_GLOO_STEP_H_
