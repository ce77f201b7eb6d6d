#include "collectives/gloo/hierarchical_backend.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "async/status_macros.h"
#include "collectives/gloo/step.h"
#include "collectives/reduce_elements.h"
#include "tensor/dtype.h"

namespace hawser::collectives {
namespace {

// Above this, each rank of a machine reduces a part.
constexpr size_t kShortAllReduce = 64 << 10;
constexpr size_t kPartAlignment = 64;

void Copy(ConstBytes from, MutableBytes to) {
  if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
}

template <class Bytes>
std::vector<Bytes> Select(std::span<const Bytes> blocks,
                          const std::vector<int>& ranks) {
  std::vector<Bytes> selected;
  if (blocks.empty()) return selected;
  selected.reserve(ranks.size());
  for (const int rank : ranks) {
    selected.push_back(blocks[static_cast<size_t>(rank)]);
  }
  return selected;
}

}  // namespace

HierarchicalBackend::HierarchicalBackend(std::unique_ptr<MeshBackend> mesh,
                                         std::unique_ptr<Backend> local,
                                         Machines machines)
    : local_(std::move(local)),
      mesh_(std::move(mesh)),
      machines_(std::move(machines)),
      rank_(mesh_->mesh().rank()) {
  int largest = 0;
  for (int machine = 0; machine < machines_.count(); ++machine) {
    largest = std::max(largest, machines_.size_of(machine));
  }
  for (int index = 0; index < largest; ++index) {
    auto& lane = lanes_.emplace_back();
    if (machines_.Counterpart(machine(), index) != rank_) continue;
    std::vector<int> ranks;
    for (int other = 0; other < machines_.count(); ++other) {
      ranks.push_back(machines_.Counterpart(other, index));
    }
    lane = std::make_unique<Collectives>(this->mesh(), std::move(ranks));
  }
  mesh_->AlsoAbort(local_.get());
}

absl::Status HierarchicalBackend::Local(const absl::Status& status) {
  return status.ok() ? status : mesh().Fail(status);
}

MutableBytes HierarchicalBackend::Scratch(size_t bytes) {
  if (scratch_bytes_ < bytes) {
    scratch_ = std::make_unique<std::byte[]>(bytes);
    scratch_bytes_ = bytes;
  }
  return MutableBytes(scratch_.get(), bytes);
}

bool HierarchicalBackend::IsFlat(const Reduction& reduction) const {
  return reduction.op == ReduceOp::kAverage &&
         reduction.dtype == tensor::DType::kF16 && !machines_.are_equal();
}

HierarchicalBackend::Levels HierarchicalBackend::LevelsOf(
    const Reduction& reduction) const {
  if (reduction.op != ReduceOp::kAverage ||
      reduction.dtype == tensor::DType::kF16) {
    return {.local = reduction,
            .between = reduction,
            .divisor = static_cast<size_t>(machines_.count())};
  }
  return {.local = {.dtype = reduction.dtype, .op = ReduceOp::kSum},
          .between = reduction,
          .divisor = all_ranks().size()};
}

int HierarchicalBackend::AtPlace(int machine, int round) const {
  const int index = round * local_size() + this->index();
  return index < machines_.size_of(machine)
             ? machines_.ranks_on(machine)[static_cast<size_t>(index)]
             : -1;
}

template <class Bytes>
std::vector<Bytes> HierarchicalBackend::Round(std::span<const Bytes> blocks,
                                              int machine, int round,
                                              Bytes spare) const {
  const std::vector<int>& ranks = machines_.ranks_on(machine);
  std::vector<Bytes> selected(static_cast<size_t>(local_size()), spare);
  const auto first = static_cast<size_t>(round * local_size());
  for (size_t i = 0; i < selected.size() && first + i < ranks.size(); ++i) {
    selected[i] = blocks[static_cast<size_t>(ranks[first + i])];
  }
  return selected;
}

absl::Status HierarchicalBackend::Barrier(async::MonotonicTime deadline) {
  mesh().BeginOperation();
  RETURN_IF_ERROR(Local(local_->Barrier(deadline)));
  if (index() == 0) RETURN_IF_ERROR(Lane(0)->Barrier(deadline));
  return Local(local_->Barrier(deadline));
}

absl::Status HierarchicalBackend::Broadcast(MutableBytes data, int root,
                                            async::MonotonicTime deadline) {
  mesh().BeginOperation();
  const int lane = machines_.index_of(root);
  if (Lane(lane) != nullptr) {
    RETURN_IF_ERROR(
        Lane(lane)->Broadcast(data, machines_.machine_of(root), deadline));
  }
  return Local(local_->Broadcast(data, lane % local_size(), deadline));
}

absl::Status HierarchicalBackend::AllReduce(
    std::span<const MutableBytes> pieces, const Reduction& reduction,
    async::MonotonicTime deadline) {
  mesh().BeginOperation();
  if (machines_.count() == 1) {
    return Local(local_->AllReduce(pieces, reduction, deadline));
  }
  if (IsFlat(reduction)) {
    return mesh_->collectives().AllReduce(pieces, reduction, deadline);
  }
  size_t bytes = 0;
  for (const MutableBytes& piece : pieces) bytes += piece.size();
  const bool by_parts = bytes > kShortAllReduce && machines_.are_equal();
  size_t padded = bytes;
  if (by_parts) {
    const size_t unit = kPartAlignment * static_cast<size_t>(local_size());
    padded = (bytes + unit - 1) / unit * unit;
  }
  const bool copied = pieces.size() != 1 || padded != bytes;
  const MutableBytes data = copied ? Scratch(padded) : pieces[0];
  if (copied) {
    size_t done = 0;
    for (const MutableBytes& piece : pieces) {
      Copy(piece, data.subspan(done, piece.size()));
      done += piece.size();
    }
    std::fill(data.begin() + static_cast<std::ptrdiff_t>(bytes), data.end(),
              std::byte{});
  }
  const Levels levels = LevelsOf(reduction);
  RETURN_IF_ERROR(by_parts ? AllReduceByParts(data, levels, deadline)
                           : AllReduceByFirstRanks(data, levels, deadline));
  if (copied) {
    size_t done = 0;
    for (const MutableBytes& piece : pieces) {
      Copy(data.subspan(done, piece.size()), piece);
      done += piece.size();
    }
  }
  return absl::OkStatus();
}

absl::Status HierarchicalBackend::AllReduceByFirstRanks(
    MutableBytes data, const Levels& levels, async::MonotonicTime deadline) {
  const bool is_first = index() == 0;
  RETURN_IF_ERROR(Local(local_->Reduce(data, is_first ? data : MutableBytes(),
                                       levels.local, 0, deadline)));
  if (is_first) {
    RETURN_IF_ERROR(Lane(0)->AllReduce(
        std::span(&data, size_t{1}), levels.between, deadline, levels.divisor));
  }
  return Local(local_->Broadcast(data, 0, deadline));
}

absl::Status HierarchicalBackend::AllReduceByParts(
    MutableBytes data, const Levels& levels, async::MonotonicTime deadline) {
  const size_t part = data.size() / static_cast<size_t>(local_size());
  std::vector<ConstBytes> inputs;
  std::vector<MutableBytes> outputs;
  for (size_t begin = 0; begin < data.size(); begin += part) {
    inputs.push_back(data.subspan(begin, part));
    outputs.push_back(data.subspan(begin, part));
  }
  const MutableBytes mine = outputs[static_cast<size_t>(index())];
  RETURN_IF_ERROR(
      Local(local_->ReduceScatter(inputs, mine, levels.local, deadline)));
  RETURN_IF_ERROR(Lane(index())->AllReduce(
      std::span(&mine, size_t{1}), levels.between, deadline, levels.divisor));
  return Local(local_->AllGather(mine, outputs, deadline));
}

absl::Status HierarchicalBackend::Reduce(ConstBytes input, MutableBytes output,
                                         const Reduction& reduction, int root,
                                         async::MonotonicTime deadline) {
  mesh().BeginOperation();
  if (IsFlat(reduction)) {
    return mesh_->collectives().Reduce(input, output, reduction, root,
                                       deadline);
  }
  const Levels levels = LevelsOf(reduction);
  const int lane = machines_.index_of(root);
  Collectives* const others = Lane(lane);
  MutableBytes partial = output;
  if (others != nullptr && rank_ != root) partial = Scratch(input.size());
  RETURN_IF_ERROR(Local(local_->Reduce(input, partial, levels.local,
                                       lane % local_size(), deadline)));
  if (others == nullptr) return absl::OkStatus();
  return others->Reduce(partial, output, levels.between,
                        machines_.machine_of(root), deadline, levels.divisor);
}

absl::Status HierarchicalBackend::ReduceScatter(
    std::span<const ConstBytes> inputs, MutableBytes output,
    const Reduction& reduction, async::MonotonicTime deadline) {
  mesh().BeginOperation();
  if (IsFlat(reduction)) {
    return mesh_->collectives().ReduceScatter(inputs, output, reduction,
                                              deadline);
  }
  const Levels levels = LevelsOf(reduction);
  const size_t bytes = output.size();
  // What the other machines send, what this rank sends them, and a spare block.
  const int num_machines = machines_.count();
  size_t num_blocks = static_cast<size_t>(num_machines) + 1;
  for (int other = 0; other < num_machines; ++other) {
    num_blocks += static_cast<size_t>(NumRounds(other));
  }
  MutableBytes free = Scratch(num_blocks * bytes);
  const auto take_block = [&] {
    const MutableBytes block = free.first(bytes);
    free = free.subspan(bytes);
    return block;
  };
  const MutableBytes spare = take_block();
  Step step(mesh(), all_ranks(), deadline);
  std::vector<const std::byte*> sources;
  for (int other = 0; other < num_machines; ++other) {
    const MutableBytes block = other == machine() ? output : take_block();
    sources.push_back(block.data());
    if (other == machine()) continue;
    step.Receive(machines_.Counterpart(other, index()), block);
  }
  const ConstBytes any = inputs[static_cast<size_t>(rank_)];
  for (int other = 0; other < num_machines; ++other) {
    if (other == machine()) continue;
    for (int round = 0; round < NumRounds(other); ++round) {
      const int to = AtPlace(other, round);
      const MutableBytes partial = to < 0 ? spare : take_block();
      RETURN_IF_ERROR(Local(local_->ReduceScatter(
          Round(inputs, other, round, any), partial, levels.local, deadline)));
      if (to >= 0) step.Send(to, partial);
    }
  }
  // Last: the output may be the memory of an input.
  RETURN_IF_ERROR(Local(local_->ReduceScatter(Round(inputs, machine(), 0, any),
                                              output, levels.local, deadline)));
  RETURN_IF_ERROR(step.Wait());
  ReduceElements(levels.between, sources, output.data(), bytes, levels.divisor);
  return absl::OkStatus();
}

absl::Status HierarchicalBackend::AllGather(
    ConstBytes input, std::span<const MutableBytes> outputs,
    async::MonotonicTime deadline) {
  mesh().BeginOperation();
  // Each local rank receives some of a machine's blocks, and all of them then
  // exchange these.
  std::vector<std::unique_ptr<Step>> steps;
  for (int other = 0; other < machines_.count(); ++other) {
    auto& step = steps.emplace_back(
        std::make_unique<Step>(mesh(), all_ranks(), deadline));
    if (other == machine()) continue;
    for (int round = 0; round < NumRounds(other); ++round) {
      const int from = AtPlace(other, round);
      if (from >= 0) step->Receive(from, outputs[static_cast<size_t>(from)]);
    }
    step->Send(machines_.Counterpart(other, index()), input);
  }
  const MutableBytes spare = Scratch(input.size());
  RETURN_IF_ERROR(Local(
      local_->AllGather(input, Round(outputs, machine(), 0, spare), deadline)));
  for (int other = 0; other < machines_.count(); ++other) {
    RETURN_IF_ERROR(steps[static_cast<size_t>(other)]->Wait());
    if (other == machine()) continue;
    for (int round = 0; round < NumRounds(other); ++round) {
      const std::vector<MutableBytes> blocks =
          Round(outputs, other, round, spare);
      RETURN_IF_ERROR(Local(local_->AllGather(
          blocks[static_cast<size_t>(index())], blocks, deadline)));
    }
  }
  return absl::OkStatus();
}

absl::Status HierarchicalBackend::Gather(ConstBytes input,
                                         std::span<const MutableBytes> outputs,
                                         int root,
                                         async::MonotonicTime deadline) {
  mesh().BeginOperation();
  const int destination = machines_.machine_of(root);
  Step step(mesh(), all_ranks(), deadline);
  if (destination != machine()) {
    step.Send(root, input);
    return step.Wait();
  }
  for (const int other : all_ranks()) {
    if (rank_ != root || machines_.machine_of(other) == machine()) continue;
    step.Receive(other, outputs[static_cast<size_t>(other)]);
  }
  RETURN_IF_ERROR(Local(
      local_->Gather(input, Select(outputs, machines_.ranks_on(machine())),
                     machines_.index_of(root), deadline)));
  return step.Wait();
}

absl::Status HierarchicalBackend::Scatter(std::span<const ConstBytes> inputs,
                                          MutableBytes output, int root,
                                          async::MonotonicTime deadline) {
  mesh().BeginOperation();
  Step step(mesh(), all_ranks(), deadline);
  if (machines_.machine_of(root) != machine()) {
    step.Receive(root, output);
    return step.Wait();
  }
  for (const int other : all_ranks()) {
    if (rank_ != root || machines_.machine_of(other) == machine()) continue;
    step.Send(other, inputs[static_cast<size_t>(other)]);
  }
  RETURN_IF_ERROR(
      Local(local_->Scatter(Select(inputs, machines_.ranks_on(machine())),
                            output, machines_.index_of(root), deadline)));
  return step.Wait();
}

absl::Status HierarchicalBackend::AllToAll(
    std::span<const ConstBytes> inputs, std::span<const MutableBytes> outputs,
    async::MonotonicTime deadline) {
  mesh().BeginOperation();
  RETURN_IF_ERROR(mesh_->collectives().CheckSizes(inputs, outputs, deadline));
  Step step(mesh(), all_ranks(), deadline);
  for (const int other : all_ranks()) {
    if (machines_.machine_of(other) == machine()) continue;
    step.Receive(other, outputs[static_cast<size_t>(other)]);
    step.Send(other, inputs[static_cast<size_t>(other)]);
  }
  const std::vector<int>& here = machines_.ranks_on(machine());
  RETURN_IF_ERROR(Local(
      local_->AllToAll(Select(inputs, here), Select(outputs, here), deadline)));
  return step.Wait();
}

}  // namespace hawser::collectives
