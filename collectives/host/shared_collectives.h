// Collectives through the slots of an exchange.

#ifndef HAWSER_COLLECTIVES_HOST_SHARED_COLLECTIVES_H_
#define HAWSER_COLLECTIVES_HOST_SHARED_COLLECTIVES_H_

#include <cstddef>
#include <span>

#include "absl/status/status.h"
#include "async/clock.h"
#include "collectives/backend.h"
#include "collectives/host/exchange.h"
#include "collectives/host/piece_list.h"
#include "collectives/reduce_op.h"

namespace hawser::collectives {

// The collectives of Backend. Data passes through the slots in segments that
// stay in the caches, so that a rank reads and writes its own memory once:
//
//   all-reduce      Each rank reduces one part of a segment, and shows the
//                   result with its data of the next one: a step a segment, and
//                   one. Every rank reduces short data by itself in one step.
//   reduce          The same; only the root reads the results.
//   reduce-scatter  A rank shows the parts of the others, and reduces its own.
//   the others      A rank shows its data, and those that need it copy it.
//
// The order in which the operands of an element are reduced is that of the
// ranks, so that all ranks have the same result, bit for bit.
//
// For one thread at a time.
class SharedCollectives {
 public:
  // `exchange` must outlive this.
  explicit SharedCollectives(Exchange& exchange) : exchange_(exchange) {}

  absl::Status Barrier(async::MonotonicTime deadline);
  absl::Status Broadcast(MutableBytes data, int root,
                         async::MonotonicTime deadline);
  absl::Status AllReduce(std::span<const MutableBytes> pieces,
                         const Reduction& reduction,
                         async::MonotonicTime deadline);
  absl::Status Reduce(ConstBytes input, MutableBytes output,
                      const Reduction& reduction, int root,
                      async::MonotonicTime deadline);
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

 private:
  // A segment of data, divided among the ranks.
  struct Segment {
    size_t offset = 0;
    size_t bytes = 0;
    // Of each rank but the last ones, which may have less.
    size_t part_bytes = 0;
  };
  struct Part {
    // From the beginning of the data.
    size_t offset = 0;
    size_t bytes = 0;
  };

  // Where the result of a reduction goes.
  struct ReduceTargets {
    // Null: this rank does not need the result.
    PieceList* output = nullptr;
    // Whether the other ranks need it: all of them, or the root.
    bool all = true;
    int root = 0;
  };

  int rank() const { return exchange_.rank(); }
  int size() const { return exchange_.size(); }
  // The data of other ranks in a slot come in the order of the ranks.
  static size_t Place(int of, int in_slot_of) {
    return static_cast<size_t>(of < in_slot_of ? of : of - 1);
  }

  Segment SegmentAt(size_t index, size_t total) const;
  static Part PartOf(const Segment& segment, int rank);
  size_t NumSegments(size_t total) const;
  size_t SegmentBytes() const;
  // Where in its slot a rank shows its part of a result, behind its data.
  size_t ResultPlace() const;
  // Bytes for each other rank, if all share a slot.
  size_t ShareBytes() const;

  absl::Status ReduceShort(PieceList& input, const Reduction& reduction,
                           const ReduceTargets& targets,
                           async::MonotonicTime deadline);
  absl::Status ReduceLong(PieceList& input, const Reduction& reduction,
                          const ReduceTargets& targets,
                          async::MonotonicTime deadline);
  absl::Status ReduceAny(PieceList& input, const Reduction& reduction,
                         const ReduceTargets& targets,
                         async::MonotonicTime deadline);
  void ShowSegment(PieceList& input, const Segment& segment, std::byte* slot);
  void ReducePart(PieceList& input, const Segment& segment,
                  const Reduction& reduction, const ReduceTargets& targets);
  void TakeResults(const Segment& segment, const ReduceTargets& targets);
  absl::Status CheckSizes(std::span<const ConstBytes> inputs,
                          std::span<const MutableBytes> outputs,
                          async::MonotonicTime deadline, size_t& largest);

  Exchange& exchange_;
};

}  // namespace hawser::collectives

#endif  // HAWSER_COLLECTIVES_HOST_SHARED_COLLECTIVES_H_
