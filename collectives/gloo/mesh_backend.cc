#include "collectives/gloo/mesh_backend.h"

#include <numeric>
#include <utility>

namespace hawser::collectives {
namespace {

std::vector<int> AllRanks(const Mesh& mesh) {
  std::vector<int> ranks(static_cast<size_t>(mesh.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

}  // namespace

MeshBackend::MeshBackend(std::unique_ptr<Mesh> mesh)
    : mesh_(std::move(mesh)),
      messages_(*mesh_),
      collectives_(*mesh_, AllRanks(*mesh_)) {
  mesh_->Start(
      [this](int from, const Mesh::Frame& frame, ConstBytes text) {
        messages_.OnFrame(from, frame, text);
      },
      [this](const absl::Status& status) { OnFailure(status); });
}

void MeshBackend::OnFailure(const absl::Status& status) {
  Backend* other = nullptr;
  {
    const async::MutexLock lock(&mutex_);
    failure_ = status;
    other = other_;
  }
  if (other != nullptr) other->Abort(status);
  messages_.OnFailure(status);
}

void MeshBackend::AlsoAbort(Backend* other) {
  absl::Status failure;
  {
    const async::MutexLock lock(&mutex_);
    other_ = other;
    failure = failure_;
  }
  if (!failure.ok()) other->Abort(failure);
}

absl::Status MeshBackend::Barrier(async::MonotonicTime deadline) {
  return Begin().Barrier(deadline);
}

absl::Status MeshBackend::Broadcast(MutableBytes data, int root,
                                    async::MonotonicTime deadline) {
  return Begin().Broadcast(data, root, deadline);
}

absl::Status MeshBackend::AllReduce(std::span<const MutableBytes> pieces,
                                    const Reduction& reduction,
                                    async::MonotonicTime deadline) {
  return Begin().AllReduce(pieces, reduction, deadline);
}

absl::Status MeshBackend::Reduce(ConstBytes input, MutableBytes output,
                                 const Reduction& reduction, int root,
                                 async::MonotonicTime deadline) {
  return Begin().Reduce(input, output, reduction, root, deadline);
}

absl::Status MeshBackend::AllGather(ConstBytes input,
                                    std::span<const MutableBytes> outputs,
                                    async::MonotonicTime deadline) {
  return Begin().AllGather(input, outputs, deadline);
}

absl::Status MeshBackend::Gather(ConstBytes input,
                                 std::span<const MutableBytes> outputs,
                                 int root, async::MonotonicTime deadline) {
  return Begin().Gather(input, outputs, root, deadline);
}

absl::Status MeshBackend::Scatter(std::span<const ConstBytes> inputs,
                                  MutableBytes output, int root,
                                  async::MonotonicTime deadline) {
  return Begin().Scatter(inputs, output, root, deadline);
}

absl::Status MeshBackend::ReduceScatter(std::span<const ConstBytes> inputs,
                                        MutableBytes output,
                                        const Reduction& reduction,
                                        async::MonotonicTime deadline) {
  return Begin().ReduceScatter(inputs, output, reduction, deadline);
}

absl::Status MeshBackend::AllToAll(std::span<const ConstBytes> inputs,
                                   std::span<const MutableBytes> outputs,
                                   async::MonotonicTime deadline) {
  return Begin().AllToAll(inputs, outputs, deadline);
}

}  // namespace hawser::collectives
