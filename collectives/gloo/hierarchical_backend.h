// Backend over shared memory within machines, and over a mesh between them.

#ifndef HAWSER_COLLECTIVES_GLOO_HIERARCHICAL_BACKEND_H_
#define HAWSER_COLLECTIVES_GLOO_HIERARCHICAL_BACKEND_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "async/clock.h"
#include "async/future.h"
#include "collectives/backend.h"
#include "collectives/gloo/collectives.h"
#include "collectives/gloo/machines.h"
#include "collectives/gloo/mesh_backend.h"
#include "collectives/reduce_op.h"

namespace hawser::collectives {

// One rank of a group whose machines have several ranks. What all ranks of a
// machine need crosses the network once. For M machines of L ranks each and N
// bytes, a machine sends:
//
//   all-reduce, short   the first ranks reduce for their machines, and exchange
//                       N (M - 1).
//   all-reduce, long    each rank reduces an L-th for its machine, which the
//                       ranks of the same index on all machines reduce and send
//                       each other: 2 N (M - 1) / M, over L connections.
//   reduce-scatter      N L (M - 1): one block for each rank elsewhere.
//   all-gather          N L (M - 1): each block once to each machine.
//   broadcast           as the mesh does between one rank of each machine.
//
// Ranks of other machines receive from Counterpart (machines.h), so that the
// machines may have different numbers of ranks; a long all-reduce then goes the
// way of a short one. Messages and all-to-all have nothing to combine: data for
// each rank goes over the mesh, or in an all-to-all over the memory.
//
// Reductions combine the operands of each machine in the order of the ranks,
// and then those of the machines. Partial results of 16-bit types are rounded.
//
// The failure of the mesh ends the work in shared memory, and the reverse.
class HierarchicalBackend final : public Backend {
 public:
  // `local` are the ranks of this one's machine, by index.
  HierarchicalBackend(std::unique_ptr<MeshBackend> mesh,
                      std::unique_ptr<Backend> local, Machines machines);

  std::string_view name() const override { return "gloo"; }
  absl::Status Barrier(async::MonotonicTime deadline) override;
  absl::Status Broadcast(MutableBytes data, int root,
                         async::MonotonicTime deadline) override;
  absl::Status AllReduce(std::span<const MutableBytes> pieces,
                         const Reduction& reduction,
                         async::MonotonicTime deadline) override;
  absl::Status Reduce(ConstBytes input, MutableBytes output,
                      const Reduction& reduction, int root,
                      async::MonotonicTime deadline) override;
  absl::Status AllGather(ConstBytes input,
                         std::span<const MutableBytes> outputs,
                         async::MonotonicTime deadline) override;
  absl::Status Gather(ConstBytes input, std::span<const MutableBytes> outputs,
                      int root, async::MonotonicTime deadline) override;
  absl::Status Scatter(std::span<const ConstBytes> inputs, MutableBytes output,
                       int root, async::MonotonicTime deadline) override;
  absl::Status ReduceScatter(std::span<const ConstBytes> inputs,
                             MutableBytes output, const Reduction& reduction,
                             async::MonotonicTime deadline) override;
  absl::Status AllToAll(std::span<const ConstBytes> inputs,
                        std::span<const MutableBytes> outputs,
                        async::MonotonicTime deadline) override;
  async::Future<void> Send(ConstBytes data, int to, uint32_t tag,
                           async::MonotonicTime deadline) override {
    return mesh_->Send(data, to, tag, deadline);
  }
  async::Future<int> Receive(MutableBytes data, int from, uint32_t tag,
                             async::MonotonicTime deadline) override {
    return mesh_->Receive(data, from, tag, deadline);
  }
  void Abort(const absl::Status& status) override { mesh_->Abort(status); }

 private:
  // How a reduction is done in two levels.
  struct Levels {
    // Within each machine.
    Reduction local;
    // Between the results of the machines; kAverage divides by `divisor`.
    Reduction between;
    size_t divisor = 0;
  };

  Mesh& mesh() { return mesh_->mesh(); }
  const std::vector<int>& all_ranks() const {
    return mesh_->collectives().ranks();
  }
  int machine() const { return machines_.machine_of(rank_); }
  int index() const { return machines_.index_of(rank_); }
  int local_size() const { return machines_.size_of(machine()); }
  // The exchange with the other machines in which the ranks of `index` take
  // part; null if this rank does not.
  Collectives* Lane(int index) {
    return lanes_[static_cast<size_t>(index)].get();
  }

  // Reduced in one level: averages of f16 whose sum may overflow, and whose
  // machines have different weights.
  bool IsFlat(const Reduction& reduction) const;
  Levels LevelsOf(const Reduction& reduction) const;
  absl::Status AllReduceByFirstRanks(MutableBytes data, const Levels& levels,
                                     async::MonotonicTime deadline);
  // `data` has local_size() equal parts.
  absl::Status AllReduceByParts(MutableBytes data, const Levels& levels,
                                async::MonotonicTime deadline);

  // The blocks of `machine` that the local ranks exchange in one collective:
  // those of the indices from round * local_size() on. Position i is that of
  // local rank i; `spare` stands for ranks that the machine does not have.
  template <class Bytes>
  std::vector<Bytes> Round(std::span<const Bytes> blocks, int machine,
                           int round, Bytes spare) const;
  int NumRounds(int machine) const {
    return (machines_.size_of(machine) + local_size() - 1) / local_size();
  }
  // The rank of `machine` at this rank's place of a round, or -1.
  int AtPlace(int machine, int round) const;

  // Ends the mesh with an error of the local ranks.
  absl::Status Local(const absl::Status& status);
  MutableBytes Scratch(size_t bytes);

  // Destroyed after the mesh, which may abort it.
  const std::unique_ptr<Backend> local_;
  const std::unique_ptr<MeshBackend> mesh_;
  const Machines machines_;
  const int rank_;
  std::vector<std::unique_ptr<Collectives>> lanes_;
  std::unique_ptr<std::byte[]> scratch_;
  size_t scratch_bytes_ = 0;
};

}  // namespace hawser::collectives

#endif  // HAWSER_COLLECTIVES_GLOO_HIERARCHICAL_BACKEND_H_
