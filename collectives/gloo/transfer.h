// Bytes that a mesh transfers.

#ifndef HAWSER_COLLECTIVES_GLOO_TRANSFER_H_
#define HAWSER_COLLECTIVES_GLOO_TRANSFER_H_

#include <chrono>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "async/clock.h"
#include "collectives/backend.h"
#include "collectives/gloo/mesh.h"
#include "gloo/transport/unbound_buffer.h"

namespace hawser::collectives {

// Bytes on their way from or to one rank. Their memory is not used any more
// once this is destroyed. A transfer and its counterpart have the same slot and
// number of bytes; those of one slot keep their order.
class Transfer {
 public:
  enum class Direction { kSend, kReceive };
  // Uses of slots; a use has 2^48 slots.
  enum class Use : uint64_t { kCollective = 1, kMessage = 2, kDrain = 3 };

  // `slot` is below 2^48. Begins at once.
  Transfer(Mesh& mesh, Direction direction, int peer, MutableBytes data,
           Use use, uint64_t slot);
  ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  int peer() const { return peer_; }
  // kDeadlineExceeded leaves it to the caller to fail the mesh, with the ranks
  // at fault.
  absl::Status Wait(async::MonotonicTime deadline);
  // After an error of Wait, of this or another transfer: whether it has
  // completed nevertheless.
  bool HasCompleted();

 private:
  friend class Mesh;
  bool WaitFor(std::chrono::milliseconds timeout);
  void Interrupt();

  Mesh& mesh_;
  const Direction direction_;
  const int peer_;
  std::unique_ptr<gloo::transport::UnboundBuffer> buffer_;
  bool posted_ = false;
  bool completed_ = false;
};

}  // namespace hawser::collectives

#endif  // HAWSER_COLLECTIVES_GLOO_TRANSFER_H_
