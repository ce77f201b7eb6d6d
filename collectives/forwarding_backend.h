// Backend made of an object for collectives and one for messages.

#ifndef HAWSER_COLLECTIVES_FORWARDING_BACKEND_H_
#define HAWSER_COLLECTIVES_FORWARDING_BACKEND_H_

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "async/clock.h"
#include "async/future.h"
#include "collectives/backend.h"
#include "collectives/reduce_op.h"

namespace hawser::collectives {

// Calls the functions of the same names and arguments of a `Collectives` and a
// `Messages`. A backend derives from it and owns both.
template <class Collectives, class Messages>
class ForwardingBackend : public Backend {
 public:
  absl::Status Barrier(async::MonotonicTime deadline) final {
    return Begin().Barrier(deadline);
  }
  absl::Status Broadcast(MutableBytes data, int root,
                         async::MonotonicTime deadline) final {
    return Begin().Broadcast(data, root, deadline);
  }
  absl::Status AllReduce(std::span<const MutableBytes> pieces,
                         const Reduction& reduction,
                         async::MonotonicTime deadline) final {
    return Begin().AllReduce(pieces, reduction, deadline);
  }
  absl::Status Reduce(ConstBytes input, MutableBytes output,
                      const Reduction& reduction, int root,
                      async::MonotonicTime deadline) final {
    return Begin().Reduce(input, output, reduction, root, deadline);
  }
  absl::Status AllGather(ConstBytes input,
                         std::span<const MutableBytes> outputs,
                         async::MonotonicTime deadline) final {
    return Begin().AllGather(input, outputs, deadline);
  }
  absl::Status Gather(ConstBytes input, std::span<const MutableBytes> outputs,
                      int root, async::MonotonicTime deadline) final {
    return Begin().Gather(input, outputs, root, deadline);
  }
  absl::Status Scatter(std::span<const ConstBytes> inputs, MutableBytes output,
                       int root, async::MonotonicTime deadline) final {
    return Begin().Scatter(inputs, output, root, deadline);
  }
  absl::Status ReduceScatter(std::span<const ConstBytes> inputs,
                             MutableBytes output, const Reduction& reduction,
                             async::MonotonicTime deadline) final {
    return Begin().ReduceScatter(inputs, output, reduction, deadline);
  }
  absl::Status AllToAll(std::span<const ConstBytes> inputs,
                        std::span<const MutableBytes> outputs,
                        async::MonotonicTime deadline) final {
    return Begin().AllToAll(inputs, outputs, deadline);
  }
  async::Future<void> Send(ConstBytes data, int to, uint32_t tag,
                           async::MonotonicTime deadline) final {
    return messages_.Send(data, to, tag, deadline);
  }
  async::Future<int> Receive(MutableBytes data, int from, uint32_t tag,
                             async::MonotonicTime deadline) final {
    return messages_.Receive(data, from, tag, deadline);
  }

 protected:
  // They may be members of the derived class, which are constructed later.
  ForwardingBackend(Collectives& collectives, Messages& messages)
      : collectives_(collectives), messages_(messages) {}

  // A collective begins.
  virtual void OnBegin() {}

 private:
  Collectives& Begin() {
    OnBegin();
    return collectives_;
  }

  Collectives& collectives_;
  Messages& messages_;
};

}  // namespace hawser::collectives

#endif  // HAWSER_COLLECTIVES_FORWARDING_BACKEND_H_
