// Messages between two ranks of a group of GPUs.

#ifndef HAWSER_COLLECTIVES_NCCL_DEVICE_MESSAGES_H_
#define HAWSER_COLLECTIVES_NCCL_DEVICE_MESSAGES_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "async/clock.h"
#include "async/future.h"
#include "collectives/backend.h"
#include "collectives/nccl/library.h"

namespace hawser::collectives {

// The sends and receives of one rank: Backend. NCCL has no tags and no order
// but that of the calls, so that the ranks agree over `control`, memory of the
// CPU, in which order they call it:
//
//   1. The sender announces a message with its tag and size. `control` finds
//      the receive.
//   2. The receiver counts the messages that it takes from this sender, and
//      enqueues the receive in this order. It replies with the number, and with
//      the id of the communicator for this direction between the two.
//   3. The sender enqueues its messages to this receiver in the order of their
//      numbers.
//
// So a send reaches the device only once its receive is there, and messages of
// opposite directions, or of other ranks, have communicators, threads and
// streams of their own: whatever the order in which ranks start messages, none
// blocks another, and a batch of them needs no group of NCCL's calls, which
// belongs to one thread. Each message is a launch; those of one direction run
// one after the other.
//
// A message of a rank to itself is copied by its receive. Thread-safe.
class DeviceMessages {
 public:
  // Tags above belong to announcements and replies.
  static constexpr uint32_t kMaxTag = (uint32_t{1} << 30) - 1;

  // `control` and `library` must outlive this. `on_failure` runs with the error
  // of an operation that ends the group, before its future completes.
  DeviceMessages(Backend& control, NcclLibrary& library, int rank,
                 const NcclConfig& config,
                 std::function<void(const absl::Status&)> on_failure);
  // Operations that have begun on the device end first.
  ~DeviceMessages();

  async::Future<void> Send(ConstBytes data, int to, uint32_t tag,
                           async::MonotonicTime deadline);
  async::Future<int> Receive(MutableBytes data, int from, uint32_t tag,
                             async::MonotonicTime deadline);

  // Ends operations on the device with `status`; those that are not there yet
  // end with `control`.
  void Abort(const absl::Status& status);

 private:
  struct State;

  // Of messages that are not on the device yet.
  async::RealClock clock_;
  const std::shared_ptr<State> state_;
};

}  // namespace hawser::collectives

#endif  // HAWSER_COLLECTIVES_NCCL_DEVICE_MESSAGES_H_
