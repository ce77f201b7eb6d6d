// Backend over a mesh.

#ifndef HAWSER_COLLECTIVES_GLOO_MESH_BACKEND_H_
#define HAWSER_COLLECTIVES_GLOO_MESH_BACKEND_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "async/clock.h"
#include "async/future.h"
#include "async/mutex.h"
#include "collectives/backend.h"
#include "collectives/gloo/collectives.h"
#include "collectives/gloo/mesh.h"
#include "collectives/gloo/messages.h"
#include "collectives/reduce_op.h"

namespace hawser::collectives {

// One rank of a group in which all ranks exchange data over the mesh.
class MeshBackend final : public Backend {
 public:
  explicit MeshBackend(std::unique_ptr<Mesh> mesh);
  ~MeshBackend() override { mesh_->Stop(); }

  Mesh& mesh() { return *mesh_; }
  // Of all ranks, in their order.
  Collectives& collectives() { return collectives_; }
  // Ends `other` when this group ends with an error. Called once; `other` must
  // outlive this.
  void AlsoAbort(Backend* other);

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
    return messages_.Send(data, to, tag, deadline);
  }
  async::Future<int> Receive(MutableBytes data, int from, uint32_t tag,
                             async::MonotonicTime deadline) override {
    return messages_.Receive(data, from, tag, deadline);
  }
  void Abort(const absl::Status& status) override { (void)mesh_->Fail(status); }

 private:
  // Counts the operation.
  Collectives& Begin() {
    mesh_->BeginOperation();
    return collectives_;
  }
  void OnFailure(const absl::Status& status);

  async::Mutex mutex_;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  Backend* other_ ABSL_GUARDED_BY(mutex_) = nullptr;
  const std::unique_ptr<Mesh> mesh_;
  Messages messages_;
  Collectives collectives_;
};

}  // namespace hawser::collectives

#endif  // HAWSER_COLLECTIVES_GLOO_MESH_BACKEND_H_
