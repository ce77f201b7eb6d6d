#include "collectives/host/shared_collectives.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "collectives/reduce_elements.h"

namespace hawser::collectives {
namespace {

using Sources = absl::InlinedVector<const std::byte*, 16>;

// Parts begin on cache lines, so that no two ranks write to one.
constexpr size_t kLine = 64;

// Up to this size of the data of the other ranks, reading all of it is faster
// than another step.
constexpr size_t kShortBytes = size_t{48} << 10;

// Large enough that the slots of a rank leave its L2 cache for the shared one:
// other cores read lines there faster than lines that are dirty in an L2 cache.
// With 64 KiB, copies take twice the time; with 2 MiB, long vectors do not fit.
constexpr size_t kSegmentBytes = size_t{512} << 10;

size_t RoundUp(size_t bytes, size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

void CopyIfOther(const std::byte* from, std::byte* to, size_t bytes) {
  if (from != to && bytes > 0) std::memcpy(to, from, bytes);
}

}  // namespace

absl::Status SharedCollectives::Barrier(async::MonotonicTime deadline) {
  RETURN_IF_ERROR(exchange_.Begin(deadline));
  exchange_.Show();
  return exchange_.WaitForAll(deadline);
}

absl::Status SharedCollectives::Broadcast(MutableBytes data, int root,
                                          async::MonotonicTime deadline) {
  for (size_t begin = 0; begin < data.size(); begin += kSegmentBytes) {
    const size_t bytes = std::min(kSegmentBytes, data.size() - begin);
    std::byte* const at = data.data() + begin;
    if (rank() == root) {
      RETURN_IF_ERROR(exchange_.Begin(deadline));
      std::memcpy(exchange_.slot(), at, bytes);
      exchange_.Show();
    } else {
      exchange_.BeginReading();
      exchange_.Show();
      RETURN_IF_ERROR(exchange_.WaitFor(root, deadline));
      std::memcpy(at, exchange_.slot_of(root), bytes);
    }
  }
  return absl::OkStatus();
}

absl::Status SharedCollectives::AllReduce(std::span<const MutableBytes> pieces,
                                          const Reduction& reduction,
                                          async::MonotonicTime deadline) {
  PieceList data(pieces);
  return ReduceAny(data, reduction, {.output = &data}, deadline);
}

absl::Status SharedCollectives::Reduce(ConstBytes input, MutableBytes output,
                                       const Reduction& reduction, int root,
                                       async::MonotonicTime deadline) {
  // Only read.
  const MutableBytes source(const_cast<std::byte*>(input.data()), input.size());
  PieceList from({&source, 1});
  PieceList to({&output, 1});
  return ReduceAny(
      from, reduction,
      {.output = rank() == root ? &to : nullptr, .all = false, .root = root},
      deadline);
}

absl::Status SharedCollectives::ReduceAny(PieceList& input,
                                          const Reduction& reduction,
                                          const ReduceTargets& targets,
                                          async::MonotonicTime deadline) {
  if (size() == 1) {
    // The only operand is the result, for every operation.
    input.ForEachPart(0, input.bytes(),
                      [&](std::span<std::byte> part, size_t done) {
                        targets.output->CopyIn(done, part.size(), part.data());
                      });
    return absl::OkStatus();
  }
  const auto others = static_cast<size_t>(size() - 1);
  if (input.bytes() * others <= kShortBytes) {
    return ReduceShort(input, reduction, targets, deadline);
  }
  return ReduceLong(input, reduction, targets, deadline);
}

absl::Status SharedCollectives::ReduceShort(PieceList& input,
                                            const Reduction& reduction,
                                            const ReduceTargets& targets,
                                            async::MonotonicTime deadline) {
  const size_t bytes = input.bytes();
  if (bytes == 0) return absl::OkStatus();
  RETURN_IF_ERROR(exchange_.Begin(deadline));
  input.CopyOut(0, bytes, exchange_.slot());
  exchange_.Show();
  if (targets.output == nullptr) return absl::OkStatus();
  RETURN_IF_ERROR(exchange_.WaitForAll(deadline));
  Sources sources(static_cast<size_t>(size()));
  targets.output->ForEachPart(
      0, bytes, [&](std::span<std::byte> part, size_t done) {
        for (int from = 0; from < size(); ++from) {
          sources[static_cast<size_t>(from)] = exchange_.slot_of(from) + done;
        }
        ReduceElements(reduction, sources, part.data(), part.size());
      });
  return absl::OkStatus();
}

size_t SharedCollectives::SegmentBytes() const {
  return std::min(kSegmentBytes, exchange_.slot_bytes());
}

size_t SharedCollectives::ResultPlace() const {
  const size_t largest_part = SegmentBytes() / static_cast<size_t>(size());
  return exchange_.slot_bytes() - RoundUp(largest_part + kLine, kLine);
}

size_t SharedCollectives::NumSegments(size_t total) const {
  return (total + SegmentBytes() - 1) / SegmentBytes();
}

SharedCollectives::Segment SharedCollectives::SegmentAt(size_t index,
                                                        size_t total) const {
  // Equal sizes rather than a short last one.
  const size_t count = NumSegments(total);
  const size_t bytes = RoundUp((total + count - 1) / count, kLine);
  Segment segment;
  segment.offset = std::min(index * bytes, total);
  segment.bytes = std::min(bytes, total - segment.offset);
  segment.part_bytes =
      RoundUp((segment.bytes + static_cast<size_t>(size()) - 1) /
                  static_cast<size_t>(size()),
              kLine);
  return segment;
}

SharedCollectives::Part SharedCollectives::PartOf(const Segment& segment,
                                                  int rank) {
  const size_t begin =
      std::min(static_cast<size_t>(rank) * segment.part_bytes, segment.bytes);
  return {.offset = segment.offset + begin,
          .bytes = std::min(segment.part_bytes, segment.bytes - begin)};
}

// A slot holds the parts of the others of a segment, and behind them this
// rank's part of the result of the segment before.
absl::Status SharedCollectives::ReduceLong(PieceList& input,
                                           const Reduction& reduction,
                                           const ReduceTargets& targets,
                                           async::MonotonicTime deadline) {
  const size_t total = input.bytes();
  const size_t count = NumSegments(total);
  RETURN_IF_ERROR(exchange_.Begin(deadline));
  ShowSegment(input, SegmentAt(0, total), exchange_.slot());
  exchange_.Show();
  for (size_t i = 0; i < count; ++i) {
    RETURN_IF_ERROR(exchange_.WaitForAll(deadline));
    if (i > 0) TakeResults(SegmentAt(i - 1, total), targets);
    ReducePart(input, SegmentAt(i, total), reduction, targets);
    if (i + 1 < count) {
      ShowSegment(input, SegmentAt(i + 1, total), exchange_.next_slot());
    }
    RETURN_IF_ERROR(exchange_.Begin(deadline));
    exchange_.Show();
  }
  if (targets.output == nullptr) return absl::OkStatus();
  RETURN_IF_ERROR(exchange_.WaitForAll(deadline));
  TakeResults(SegmentAt(count - 1, total), targets);
  return absl::OkStatus();
}

void SharedCollectives::ShowSegment(PieceList& input, const Segment& segment,
                                    std::byte* slot) {
  for (int to = 0; to < size(); ++to) {
    if (to == rank()) continue;
    const Part part = PartOf(segment, to);
    input.CopyOut(part.offset, part.bytes,
                  slot + Place(to, rank()) * segment.part_bytes);
  }
}

void SharedCollectives::ReducePart(PieceList& input, const Segment& segment,
                                   const Reduction& reduction,
                                   const ReduceTargets& targets) {
  const Part part = PartOf(segment, rank());
  std::byte* const shown = exchange_.next_slot() + ResultPlace();
  const bool others_need_it = targets.all || targets.root != rank();
  Sources sources(static_cast<size_t>(size()));
  input.ForEachPart(
      part.offset, part.bytes, [&](std::span<std::byte> own, size_t done) {
        for (int from = 0; from < size(); ++from) {
          sources[static_cast<size_t>(from)] =
              from == rank()
                  ? own.data()
                  : exchange_.slot_of(from) +
                        Place(rank(), from) * segment.part_bytes + done;
        }
        if (targets.output == nullptr) {
          ReduceElements(reduction, sources, shown + done, own.size());
          return;
        }
        // The pieces of the output are those of the input, or one.
        targets.output->ForEachPart(
            part.offset + done, own.size(),
            [&](std::span<std::byte> to, size_t before) {
              Sources inner = sources;
              for (const std::byte*& source : inner) source += before;
              ReduceElements(reduction, inner, to.data(), to.size());
              if (others_need_it) {
                std::memcpy(shown + done + before, to.data(), to.size());
              }
            });
      });
}

void SharedCollectives::TakeResults(const Segment& segment,
                                    const ReduceTargets& targets) {
  if (targets.output == nullptr) return;
  for (int i = 1; i < size(); ++i) {
    const int from = (rank() + i) % size();
    const Part part = PartOf(segment, from);
    targets.output->CopyIn(part.offset, part.bytes,
                           exchange_.slot_of(from) + ResultPlace());
  }
}

absl::Status SharedCollectives::AllGather(ConstBytes input,
                                          std::span<const MutableBytes> outputs,
                                          async::MonotonicTime deadline) {
  for (size_t begin = 0; begin < input.size(); begin += kSegmentBytes) {
    const size_t bytes = std::min(kSegmentBytes, input.size() - begin);
    RETURN_IF_ERROR(exchange_.Begin(deadline));
    std::memcpy(exchange_.slot(), input.data() + begin, bytes);
    exchange_.Show();
    CopyIfOther(input.data() + begin,
                outputs[static_cast<size_t>(rank())].data() + begin, bytes);
    for (int i = 1; i < size(); ++i) {
      const int from = (rank() + i) % size();
      RETURN_IF_ERROR(exchange_.WaitFor(from, deadline));
      std::memcpy(outputs[static_cast<size_t>(from)].data() + begin,
                  exchange_.slot_of(from), bytes);
    }
  }
  return absl::OkStatus();
}

absl::Status SharedCollectives::Gather(ConstBytes input,
                                       std::span<const MutableBytes> outputs,
                                       int root,
                                       async::MonotonicTime deadline) {
  for (size_t begin = 0; begin < input.size(); begin += kSegmentBytes) {
    const size_t bytes = std::min(kSegmentBytes, input.size() - begin);
    if (rank() != root) {
      RETURN_IF_ERROR(exchange_.Begin(deadline));
      std::memcpy(exchange_.slot(), input.data() + begin, bytes);
      exchange_.Show();
      continue;
    }
    exchange_.BeginReading();
    exchange_.Show();
    CopyIfOther(input.data() + begin,
                outputs[static_cast<size_t>(root)].data() + begin, bytes);
    for (int i = 1; i < size(); ++i) {
      const int from = (root + i) % size();
      RETURN_IF_ERROR(exchange_.WaitFor(from, deadline));
      std::memcpy(outputs[static_cast<size_t>(from)].data() + begin,
                  exchange_.slot_of(from), bytes);
    }
  }
  return absl::OkStatus();
}

size_t SharedCollectives::ShareBytes() const {
  const auto others = static_cast<size_t>(std::max(1, size() - 1));
  return kSegmentBytes / others / kLine * kLine;
}

absl::Status SharedCollectives::Scatter(std::span<const ConstBytes> inputs,
                                        MutableBytes output, int root,
                                        async::MonotonicTime deadline) {
  const size_t share = ShareBytes();
  if (rank() == root) {
    CopyIfOther(inputs[static_cast<size_t>(root)].data(), output.data(),
                output.size());
  }
  if (size() == 1) return absl::OkStatus();
  for (size_t begin = 0; begin < output.size(); begin += share) {
    const size_t bytes = std::min(share, output.size() - begin);
    if (rank() != root) {
      exchange_.BeginReading();
      exchange_.Show();
      RETURN_IF_ERROR(exchange_.WaitFor(root, deadline));
      std::memcpy(output.data() + begin,
                  exchange_.slot_of(root) + Place(rank(), root) * share, bytes);
      continue;
    }
    RETURN_IF_ERROR(exchange_.Begin(deadline));
    for (int to = 0; to < size(); ++to) {
      if (to == root) continue;
      std::memcpy(exchange_.slot() + Place(to, root) * share,
                  inputs[static_cast<size_t>(to)].data() + begin, bytes);
    }
    exchange_.Show();
  }
  return absl::OkStatus();
}

absl::Status SharedCollectives::ReduceScatter(
    std::span<const ConstBytes> inputs, MutableBytes output,
    const Reduction& reduction, async::MonotonicTime deadline) {
  const size_t share = ShareBytes();
  Sources sources(static_cast<size_t>(size()));
  for (size_t begin = 0; begin < output.size(); begin += share) {
    const size_t bytes = std::min(share, output.size() - begin);
    RETURN_IF_ERROR(exchange_.Begin(deadline));
    for (int to = 0; to < size(); ++to) {
      if (to == rank()) continue;
      std::memcpy(exchange_.slot() + Place(to, rank()) * share,
                  inputs[static_cast<size_t>(to)].data() + begin, bytes);
    }
    exchange_.Show();
    RETURN_IF_ERROR(exchange_.WaitForAll(deadline));
    for (int from = 0; from < size(); ++from) {
      sources[static_cast<size_t>(from)] =
          from == rank()
              ? inputs[static_cast<size_t>(from)].data() + begin
              : exchange_.slot_of(from) + Place(rank(), from) * share;
    }
    ReduceElements(reduction, sources, output.data() + begin, bytes);
  }
  return absl::OkStatus();
}

// Each rank shows how much it sends to and receives from each other.
absl::Status SharedCollectives::CheckSizes(
    std::span<const ConstBytes> inputs, std::span<const MutableBytes> outputs,
    async::MonotonicTime deadline, size_t& largest) {
  const auto ranks = static_cast<size_t>(size());
  RETURN_IF_ERROR(exchange_.Begin(deadline));
  std::vector<uint64_t> sizes(2 * ranks);
  for (size_t i = 0; i < ranks; ++i) {
    sizes[i] = inputs[i].size();
    sizes[ranks + i] = outputs[i].size();
  }
  const size_t bytes = sizes.size() * sizeof(uint64_t);
  std::memcpy(exchange_.slot(), sizes.data(), bytes);
  exchange_.Show();
  RETURN_IF_ERROR(exchange_.WaitForAll(deadline));
  std::vector<std::vector<uint64_t>> of(ranks,
                                        std::vector<uint64_t>(2 * ranks));
  for (size_t i = 0; i < ranks; ++i) {
    std::memcpy(of[i].data(), exchange_.slot_of(static_cast<int>(i)), bytes);
  }
  largest = 0;
  for (size_t from = 0; from < ranks; ++from) {
    for (size_t to = 0; to < ranks; ++to) {
      if (of[from][to] != of[to][ranks + from]) {
        return absl::InvalidArgumentError(absl::StrCat(
            "rank ", from, " sends ", of[from][to], " bytes to rank ", to,
            ", which receives ", of[to][ranks + from]));
      }
      if (from != to) largest = std::max<size_t>(largest, of[from][to]);
    }
  }
  return absl::OkStatus();
}

absl::Status SharedCollectives::AllToAll(std::span<const ConstBytes> inputs,
                                         std::span<const MutableBytes> outputs,
                                         async::MonotonicTime deadline) {
  size_t largest = 0;
  RETURN_IF_ERROR(CheckSizes(inputs, outputs, deadline, largest));
  const auto self = static_cast<size_t>(rank());
  CopyIfOther(inputs[self].data(), outputs[self].data(), inputs[self].size());
  const size_t share = ShareBytes();
  const auto bytes_at = [&](size_t total, size_t begin) {
    return begin >= total ? 0 : std::min(share, total - begin);
  };
  for (size_t begin = 0; begin < largest; begin += share) {
    RETURN_IF_ERROR(exchange_.Begin(deadline));
    for (int to = 0; to < size(); ++to) {
      const ConstBytes input = inputs[static_cast<size_t>(to)];
      const size_t bytes = bytes_at(input.size(), begin);
      if (to == rank() || bytes == 0) continue;
      std::memcpy(exchange_.slot() + Place(to, rank()) * share,
                  input.data() + begin, bytes);
    }
    exchange_.Show();
    for (int i = 1; i < size(); ++i) {
      const int from = (rank() + i) % size();
      const MutableBytes output = outputs[static_cast<size_t>(from)];
      const size_t bytes = bytes_at(output.size(), begin);
      if (bytes == 0) continue;
      RETURN_IF_ERROR(exchange_.WaitFor(from, deadline));
      std::memcpy(output.data() + begin,
                  exchange_.slot_of(from) + Place(rank(), from) * share, bytes);
    }
  }
  return absl::OkStatus();
}

}  // namespace hawser::collectives
