#include "collectives/gloo/collectives.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "collectives/gloo/step.h"
#include "collectives/reduce_elements.h"

namespace hawser::collectives {
namespace {

// Above this, reductions take two steps.
constexpr size_t kShortReduction = 16 << 10;
// Above this, a broadcast takes two steps.
constexpr size_t kShortBroadcast = 256 << 10;
// Of a part, so that a rank reduces one while the next one arrives.
constexpr size_t kSegmentBytes = 1 << 20;
constexpr size_t kPartAlignment = 64;

template <class Bytes>
Bytes Part(Bytes data, int rank, int size) {
  const auto ranks = static_cast<size_t>(size);
  const size_t part = (data.size() + ranks - 1) / ranks;
  const size_t aligned =
      (part + kPartAlignment - 1) / kPartAlignment * kPartAlignment;
  const size_t begin =
      std::min(data.size(), aligned * static_cast<size_t>(rank));
  return data.subspan(begin, std::min(aligned, data.size() - begin));
}

template <class Bytes>
Bytes Segment(Bytes data, size_t segment) {
  const size_t begin = std::min(data.size(), segment * kSegmentBytes);
  return data.subspan(begin, std::min(kSegmentBytes, data.size() - begin));
}

void Copy(ConstBytes from, MutableBytes to) {
  if (!from.empty() && from.data() != to.data()) {
    std::memcpy(to.data(), from.data(), from.size());
  }
}

}  // namespace

Collectives::Collectives(Mesh& mesh, std::vector<int> ranks)
    : mesh_(mesh),
      ranks_(std::move(ranks)),
      rank_(static_cast<int>(
          std::find(ranks_.begin(), ranks_.end(), mesh.rank()) -
          ranks_.begin())) {}

MutableBytes Collectives::Scratch(size_t which, size_t bytes) {
  Memory& memory = scratch_[which];
  if (memory.bytes < bytes) {
    memory.data = std::make_unique_for_overwrite<std::byte[]>(bytes);
    memory.bytes = bytes;
  }
  return MutableBytes(memory.data.get(), bytes);
}

absl::Status Collectives::Barrier(async::MonotonicTime deadline) {
  const std::byte mine{};
  std::vector<std::byte> theirs(static_cast<size_t>(size()));
  Step step(mesh_, ranks_, deadline);
  for (int other = 0; other < size(); ++other) {
    if (other == rank()) continue;
    step.Receive(other,
                 MutableBytes(&theirs[static_cast<size_t>(other)], size_t{1}));
    step.Send(other, ConstBytes(&mine, size_t{1}));
  }
  return step.Wait();
}

absl::Status Collectives::Broadcast(MutableBytes data, int root,
                                    async::MonotonicTime deadline) {
  if (data.size() <= kShortBroadcast || size() <= 2) {
    Step step(mesh_, ranks_, deadline);
    if (rank() != root) {
      step.Receive(root, data);
      return step.Wait();
    }
    for (int other = 0; other < size(); ++other) {
      if (other != root) step.Send(other, data);
    }
    return step.Wait();
  }
  // 1. The root sends each rank a part.
  // 2. All send their parts to all but the root.
  Step step(mesh_, ranks_, deadline);
  if (rank() == root) {
    for (int other = 0; other < size(); ++other) {
      if (other != root) step.Send(other, Part(data, other, size()));
    }
    for (int other = 0; other < size(); ++other) {
      if (other != root) step.Send(other, Part(data, root, size()));
    }
    return step.Wait();
  }
  {
    Step first(mesh_, ranks_, deadline);
    first.Receive(root, Part(data, rank(), size()));
    step.Receive(root, Part(data, root, size()));
    for (int other = 0; other < size(); ++other) {
      if (other == root || other == rank()) continue;
      step.Receive(other, Part(data, other, size()));
    }
    RETURN_IF_ERROR(first.Wait());
  }
  for (int other = 0; other < size(); ++other) {
    if (other == root || other == rank()) continue;
    step.Send(other, Part(data, rank(), size()));
  }
  return step.Wait();
}

absl::Status Collectives::AllReduce(std::span<const MutableBytes> pieces,
                                    const Reduction& reduction,
                                    async::MonotonicTime deadline,
                                    size_t divisor) {
  if (pieces.size() == 1) {
    return AllReduceInPlace(pieces[0], reduction, deadline, divisor);
  }
  size_t bytes = 0;
  for (const MutableBytes& piece : pieces) bytes += piece.size();
  const auto memory = std::make_unique_for_overwrite<std::byte[]>(bytes);
  const MutableBytes all(memory.get(), bytes);
  size_t done = 0;
  for (const MutableBytes& piece : pieces) {
    Copy(piece, all.subspan(done, piece.size()));
    done += piece.size();
  }
  RETURN_IF_ERROR(AllReduceInPlace(all, reduction, deadline, divisor));
  done = 0;
  for (const MutableBytes& piece : pieces) {
    Copy(all.subspan(done, piece.size()), piece);
    done += piece.size();
  }
  return absl::OkStatus();
}

absl::Status Collectives::AllReduceInPlace(MutableBytes data,
                                           const Reduction& reduction,
                                           async::MonotonicTime deadline,
                                           size_t divisor) {
  if (data.size() <= kShortReduction || size() == 1) {
    return ReduceWhole(data, data, reduction,
                       std::vector<bool>(static_cast<size_t>(size()), true),
                       deadline, divisor);
  }
  std::vector<ConstBytes> inputs;
  std::vector<MutableBytes> outputs;
  for (int other = 0; other < size(); ++other) {
    inputs.push_back(Part(ConstBytes(data), other, size()));
    outputs.push_back(Part(data, other, size()));
  }
  const MutableBytes mine = outputs[static_cast<size_t>(rank())];
  RETURN_IF_ERROR(ReduceParts(inputs, mine, reduction, deadline, divisor));
  Step step(mesh_, ranks_, deadline);
  for (int other = 0; other < size(); ++other) {
    if (other == rank()) continue;
    step.Receive(other, outputs[static_cast<size_t>(other)]);
    step.Send(other, mine);
  }
  return step.Wait();
}

absl::Status Collectives::ReduceWhole(ConstBytes input, MutableBytes output,
                                      const Reduction& reduction,
                                      const std::vector<bool>& receivers,
                                      async::MonotonicTime deadline,
                                      size_t divisor) {
  const bool receives = receivers[static_cast<size_t>(rank())];
  const MutableBytes scratch = Scratch(
      0, receives ? input.size() * static_cast<size_t>(size()) : size_t{0});
  std::vector<const std::byte*> sources(static_cast<size_t>(size()),
                                        input.data());
  {
    Step step(mesh_, ranks_, deadline);
    for (int other = 0; other < size(); ++other) {
      if (other == rank()) continue;
      const auto index = static_cast<size_t>(other);
      if (receives) {
        const MutableBytes theirs =
            scratch.subspan(index * input.size(), input.size());
        step.Receive(other, theirs);
        sources[index] = theirs.data();
      }
      if (receivers[index]) step.Send(other, input);
    }
    RETURN_IF_ERROR(step.Wait());
  }
  if (receives) {
    ReduceElements(reduction, sources, output.data(), input.size(), divisor);
  }
  return absl::OkStatus();
}

absl::Status Collectives::ReduceParts(std::span<const ConstBytes> inputs,
                                      MutableBytes output,
                                      const Reduction& reduction,
                                      async::MonotonicTime deadline,
                                      size_t divisor) {
  const auto me = static_cast<size_t>(rank());
  size_t longest = 0;
  for (const ConstBytes& input : inputs) {
    longest = std::max(longest, input.size());
  }
  const size_t num_segments = (longest + kSegmentBytes - 1) / kSegmentBytes;
  const auto begin = [&](size_t segment) {
    const size_t bytes = Segment(output, segment).size();
    const MutableBytes scratch = Scratch(segment % 2, bytes * inputs.size());
    auto step = std::make_unique<Step>(mesh_, ranks_, deadline);
    for (size_t other = 0; other < inputs.size(); ++other) {
      if (other == me) continue;
      step->Receive(static_cast<int>(other),
                    scratch.subspan(other * bytes, bytes));
    }
    for (size_t other = 0; other < inputs.size(); ++other) {
      if (other == me) continue;
      step->Send(static_cast<int>(other), Segment(inputs[other], segment));
    }
    return step;
  };
  std::unique_ptr<Step> step;
  if (num_segments > 0) step = begin(0);
  for (size_t segment = 0; segment < num_segments; ++segment) {
    std::unique_ptr<Step> next;
    if (segment + 1 < num_segments) next = begin(segment + 1);
    RETURN_IF_ERROR(step->Wait());
    const MutableBytes result = Segment(output, segment);
    const std::byte* const scratch = scratch_[segment % 2].data.get();
    std::vector<const std::byte*> sources;
    for (size_t other = 0; other < inputs.size(); ++other) {
      sources.push_back(other == me ? Segment(inputs[me], segment).data()
                                    : scratch + other * result.size());
    }
    ReduceElements(reduction, sources, result.data(), result.size(), divisor);
    step = std::move(next);
  }
  return absl::OkStatus();
}

absl::Status Collectives::Reduce(ConstBytes input, MutableBytes output,
                                 const Reduction& reduction, int root,
                                 async::MonotonicTime deadline,
                                 size_t divisor) {
  if (input.size() <= kShortReduction || size() <= 2) {
    std::vector<bool> receivers(static_cast<size_t>(size()), false);
    receivers[static_cast<size_t>(root)] = true;
    return ReduceWhole(input, output, reduction, receivers, deadline, divisor);
  }
  std::vector<ConstBytes> inputs;
  inputs.reserve(static_cast<size_t>(size()));
  for (int other = 0; other < size(); ++other) {
    inputs.push_back(Part(input, other, size()));
  }
  const size_t bytes = inputs[static_cast<size_t>(rank())].size();
  const auto memory = std::make_unique_for_overwrite<std::byte[]>(bytes);
  const MutableBytes mine(memory.get(), bytes);
  RETURN_IF_ERROR(ReduceParts(inputs, mine, reduction, deadline, divisor));
  Step step(mesh_, ranks_, deadline);
  if (rank() != root) {
    step.Send(root, mine);
    return step.Wait();
  }
  for (int other = 0; other < size(); ++other) {
    if (other != root) step.Receive(other, Part(output, other, size()));
  }
  Copy(mine, Part(output, root, size()));
  return step.Wait();
}

absl::Status Collectives::AllGather(ConstBytes input,
                                    std::span<const MutableBytes> outputs,
                                    async::MonotonicTime deadline) {
  Step step(mesh_, ranks_, deadline);
  for (int other = 0; other < size(); ++other) {
    if (other == rank()) continue;
    step.Receive(other, outputs[static_cast<size_t>(other)]);
    step.Send(other, input);
  }
  Copy(input, outputs[static_cast<size_t>(rank())]);
  return step.Wait();
}

absl::Status Collectives::Gather(ConstBytes input,
                                 std::span<const MutableBytes> outputs,
                                 int root, async::MonotonicTime deadline) {
  Step step(mesh_, ranks_, deadline);
  if (rank() != root) {
    step.Send(root, input);
    return step.Wait();
  }
  for (int other = 0; other < size(); ++other) {
    if (other != root) {
      step.Receive(other, outputs[static_cast<size_t>(other)]);
    }
  }
  Copy(input, outputs[static_cast<size_t>(root)]);
  return step.Wait();
}

absl::Status Collectives::Scatter(std::span<const ConstBytes> inputs,
                                  MutableBytes output, int root,
                                  async::MonotonicTime deadline) {
  Step step(mesh_, ranks_, deadline);
  if (rank() != root) {
    step.Receive(root, output);
    return step.Wait();
  }
  for (int other = 0; other < size(); ++other) {
    if (other != root) step.Send(other, inputs[static_cast<size_t>(other)]);
  }
  Copy(inputs[static_cast<size_t>(root)], output);
  return step.Wait();
}

absl::Status Collectives::ReduceScatter(std::span<const ConstBytes> inputs,
                                        MutableBytes output,
                                        const Reduction& reduction,
                                        async::MonotonicTime deadline) {
  return ReduceParts(inputs, output, reduction, deadline, 0);
}

absl::Status Collectives::CheckSizes(std::span<const ConstBytes> inputs,
                                     std::span<const MutableBytes> outputs,
                                     async::MonotonicTime deadline) {
  // A row for each rank: the sizes that it sends, then those that it receives.
  const size_t ranks = inputs.size();
  std::vector<uint64_t> sizes(2 * ranks * ranks);
  const auto row_of = [&](size_t of) {
    return std::span(sizes).subspan(2 * ranks * of, 2 * ranks);
  };
  const auto mine = row_of(static_cast<size_t>(rank()));
  std::vector<MutableBytes> rows;
  for (size_t other = 0; other < ranks; ++other) {
    mine[other] = inputs[other].size();
    mine[ranks + other] = outputs[other].size();
    rows.push_back(std::as_writable_bytes(row_of(other)));
  }
  RETURN_IF_ERROR(AllGather(std::as_bytes(mine), rows, deadline));
  for (size_t from = 0; from < ranks; ++from) {
    for (size_t to = 0; to < ranks; ++to) {
      const uint64_t sent = row_of(from)[to];
      const uint64_t received = row_of(to)[ranks + from];
      if (sent == received) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "rank ", ranks_[from], " sends ", sent, " bytes to rank ", ranks_[to],
          ", which receives ", received, " from it"));
    }
  }
  return absl::OkStatus();
}

absl::Status Collectives::AllToAll(std::span<const ConstBytes> inputs,
                                   std::span<const MutableBytes> outputs,
                                   async::MonotonicTime deadline) {
  RETURN_IF_ERROR(CheckSizes(inputs, outputs, deadline));
  Step step(mesh_, ranks_, deadline);
  for (int other = 0; other < size(); ++other) {
    if (other == rank()) continue;
    step.Receive(other, outputs[static_cast<size_t>(other)]);
    step.Send(other, inputs[static_cast<size_t>(other)]);
  }
  const auto me = static_cast<size_t>(rank());
  Copy(inputs[me], outputs[me]);
  return step.Wait();
}

}  // namespace hawser::collectives
