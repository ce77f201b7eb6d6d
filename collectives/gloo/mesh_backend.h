// Backend over a mesh.

#ifndef HAWSER_COLLECTIVES_GLOO_MESH_BACKEND_H_
#define HAWSER_COLLECTIVES_GLOO_MESH_BACKEND_H_

#include <memory>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "async/mutex.h"
#include "collectives/backend.h"
#include "collectives/forwarding_backend.h"
#include "collectives/gloo/collectives.h"
#include "collectives/gloo/mesh.h"
#include "collectives/gloo/messages.h"

namespace hawser::collectives {

// One rank of a group in which all ranks exchange data over the mesh.
class MeshBackend final : public ForwardingBackend<Collectives, Messages> {
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
  void Abort(const absl::Status& status) override { (void)mesh_->Fail(status); }

 private:
  void OnBegin() override { mesh_->BeginOperation(); }
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
