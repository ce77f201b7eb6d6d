// The collectives of ranks of a mesh.

#ifndef HAWSER_COLLECTIVES_GLOO_COLLECTIVES_H_
#define HAWSER_COLLECTIVES_GLOO_COLLECTIVES_H_

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "async/clock.h"
#include "collectives/backend.h"
#include "collectives/gloo/mesh.h"
#include "collectives/reduce_op.h"

namespace hawser::collectives {

// See Backend. Ranks exchange data directly, not over other ranks, so that an
// operation has one or two steps whatever their number, and an error names the
// rank at fault. For P ranks and N bytes, each rank sends:
//
//   all-reduce, short   N (P - 1) in one step: all inputs to all.
//   all-reduce, long    2 N (P - 1) / P in two: a rank reduces its part for all
//                       (1), and sends the result to all (2); as few bytes as a
//                       ring, whose 2 (P - 1) steps would combine the operands
//                       in other orders.
//   reduce              the same, with the root for all.
//   reduce-scatter      N (P - 1) / P: step 1 alone.
//   broadcast, long     the root 2 N at most: it sends each rank a part, which
//                       the ranks send to each other.
//
// For kAverage, the sum is divided by `divisor`, or if it is 0 by the number of
// ranks that take part.
//
// For one thread at a time.
class Collectives {
 public:
  // Of these ranks of the mesh, among them this one. The methods take and
  // return things in the order of `ranks`, and a root as its position.
  // `mesh` must outlive this.
  Collectives(Mesh& mesh, std::vector<int> ranks);

  const std::vector<int>& ranks() const { return ranks_; }

  absl::Status Barrier(async::MonotonicTime deadline);
  absl::Status Broadcast(MutableBytes data, int root,
                         async::MonotonicTime deadline);
  absl::Status AllReduce(std::span<const MutableBytes> pieces,
                         const Reduction& reduction,
                         async::MonotonicTime deadline, size_t divisor = 0);
  absl::Status Reduce(ConstBytes input, MutableBytes output,
                      const Reduction& reduction, int root,
                      async::MonotonicTime deadline, size_t divisor = 0);
  absl::Status AllGather(ConstBytes input,
                         std::span<const MutableBytes> outputs,
                         async::MonotonicTime deadline);
  absl::Status Gather(ConstBytes input, std::span<const MutableBytes> outputs,
                      int root, async::MonotonicTime deadline);
  absl::Status Scatter(std::span<const ConstBytes> inputs, MutableBytes output,
                       int root, async::MonotonicTime deadline);
  absl::Status ReduceScatter(std::span<const ConstBytes> inputs,
                             MutableBytes output, const Reduction& reduction,
                             async::MonotonicTime deadline);
  absl::Status AllToAll(std::span<const ConstBytes> inputs,
                        std::span<const MutableBytes> outputs,
                        async::MonotonicTime deadline);
  // The check of AllToAll: kInvalidArgument on all ranks if a rank sends
  // another size than the other receives.
  absl::Status CheckSizes(std::span<const ConstBytes> inputs,
                          std::span<const MutableBytes> outputs,
                          async::MonotonicTime deadline);

 private:
  absl::Status AllReduceInPlace(MutableBytes data, const Reduction& reduction,
                                async::MonotonicTime deadline, size_t divisor);
  // All inputs go to all ranks in `receivers`, which reduce them.
  absl::Status ReduceWhole(ConstBytes input, MutableBytes output,
                           const Reduction& reduction,
                           const std::vector<bool>& receivers,
                           async::MonotonicTime deadline, size_t divisor);
  // Each rank gets the reduction of all `inputs[rank]`: this one in `output`,
  // which may be the memory of its input.
  absl::Status ReduceParts(std::span<const ConstBytes> inputs,
                           MutableBytes output, const Reduction& reduction,
                           async::MonotonicTime deadline, size_t divisor);

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(ranks_.size()); }
  // Memory for `bytes` bytes, valid until the next call with this `which`.
  MutableBytes Scratch(size_t which, size_t bytes);

  Mesh& mesh_;
  const std::vector<int> ranks_;
  // Its position in `ranks_`.
  const int rank_;
  struct Memory {
    std::unique_ptr<std::byte[]> data;
    size_t bytes = 0;
  };
  Memory scratch_[2];
};

}  // namespace hawser::collectives

#endif  // HAWSER_COLLECTIVES_GLOO_COLLECTIVES_H_
