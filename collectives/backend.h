// Interface of the backends of process groups.

#ifndef HAWSER_COLLECTIVES_BACKEND_H_
#define HAWSER_COLLECTIVES_BACKEND_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "async/clock.h"
#include "async/future.h"
#include "collectives/reduce_op.h"
#include "tensor/device.h"

namespace hawser::collectives {

using ConstBytes = std::span<const std::byte>;
using MutableBytes = std::span<std::byte>;

// The collectives of one rank of a group, on memory of one device. A
// ProcessGroup checks the arguments before, and says what each operation does;
// there are as many `inputs` or `outputs` as ranks, each of the same size on
// all ranks. An output may be the input that it replaces: the one of this rank,
// or the whole buffer of a reduction.
//
// Collectives block until their result is in memory, and are called by one
// thread at a time, in the same order on all ranks. Point-to-point operations
// and Abort may be called by other threads meanwhile.
//
// After an error of any operation but kInvalidArgument and kUnimplemented the
// backend is unusable, and the ranks that wait for this one get an error.
// Errors:
//   kDeadlineExceeded  names the ranks that did not take part in time.
//   kUnavailable       names the rank that has died.
//   kAborted           another rank has aborted; names it and its reason.
//   kUnimplemented     the backend does not have the operation for this dtype,
//                      on any rank; nothing was sent.
class Backend {
 public:
  virtual ~Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  // The word that selects it: "host", "gloo".
  virtual std::string_view name() const = 0;

  // The backend that serves memory of `device` for this group: this one, or one
  // that it owns. Null: none does.
  virtual Backend* ForDevice(tensor::Device device) {
    return device.is_cpu() ? this : nullptr;
  }
  // The largest tag of a message.
  virtual uint32_t max_tag() const {
    return std::numeric_limits<uint32_t>::max();
  }

  // A point in the work that a thread has enqueued on a device.
  class Mark {
   public:
    virtual ~Mark() = default;
  };
  // Marks the end of what the calling thread has enqueued on the device up to
  // now. Null where work is not enqueued. Thread-safe.
  virtual std::shared_ptr<const Mark> MarkEnqueued() { return nullptr; }
  // The next collective reads its operands after this point of the device's
  // work, instead of after all that is enqueued when it is called. Called by
  // the thread that calls the collective.
  virtual void StartAfter(std::shared_ptr<const Mark> /*mark*/) {}

  virtual absl::Status Barrier(async::MonotonicTime deadline) = 0;
  virtual absl::Status Broadcast(MutableBytes data, int root,
                                 async::MonotonicTime deadline) = 0;
  // Reduces the concatenation of `pieces`, whose sizes may differ.
  virtual absl::Status AllReduce(std::span<const MutableBytes> pieces,
                                 const Reduction& reduction,
                                 async::MonotonicTime deadline) = 0;
  // `output` is empty except on `root`.
  virtual absl::Status Reduce(ConstBytes input, MutableBytes output,
                              const Reduction& reduction, int root,
                              async::MonotonicTime deadline) = 0;
  virtual absl::Status AllGather(ConstBytes input,
                                 std::span<const MutableBytes> outputs,
                                 async::MonotonicTime deadline) = 0;
  // There are no `outputs` except on `root`.
  virtual absl::Status Gather(ConstBytes input,
                              std::span<const MutableBytes> outputs, int root,
                              async::MonotonicTime deadline) = 0;
  // There are no `inputs` except on `root`.
  virtual absl::Status Scatter(std::span<const ConstBytes> inputs,
                               MutableBytes output, int root,
                               async::MonotonicTime deadline) = 0;
  virtual absl::Status ReduceScatter(std::span<const ConstBytes> inputs,
                                     MutableBytes output,
                                     const Reduction& reduction,
                                     async::MonotonicTime deadline) = 0;
  // The sizes of inputs and outputs may differ by pair of ranks.
  // kInvalidArgument on all ranks: the size that a rank sends is not the one
  // that the other receives; names both.
  virtual absl::Status AllToAll(std::span<const ConstBytes> inputs,
                                std::span<const MutableBytes> outputs,
                                async::MonotonicTime deadline) = 0;

  // Messages between two ranks arrive in the order of their Send. A receive
  // takes the oldest message of its tag. The memory must stay until the future
  // completes. kInvalidArgument: the message has another size; it is dropped.
  virtual async::Future<void> Send(ConstBytes data, int to, uint32_t tag,
                                   async::MonotonicTime deadline) = 0;
  // Completes with the rank of the sender: `from`, or if it is kAnyRank the
  // first that has a message of the tag.
  virtual async::Future<int> Receive(MutableBytes data, int from, uint32_t tag,
                                     async::MonotonicTime deadline) = 0;

  // Ends all operations on all ranks with kAborted, and on this one with
  // `status`.
  virtual void Abort(const absl::Status& status) = 0;

  static constexpr int kAnyRank = -1;

 protected:
  Backend() = default;
};

}  // namespace hawser::collectives

#endif  // HAWSER_COLLECTIVES_BACKEND_H_
