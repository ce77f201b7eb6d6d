#include "collectives/gloo/mesh_backend.h"

#include <numeric>
#include <utility>
#include <vector>

namespace hawser::collectives {
namespace {

std::vector<int> AllRanks(const Mesh& mesh) {
  std::vector<int> ranks(static_cast<size_t>(mesh.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

}  // namespace

MeshBackend::MeshBackend(std::unique_ptr<Mesh> mesh)
    : ForwardingBackend(collectives_, messages_),
      mesh_(std::move(mesh)),
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

}  // namespace hawser::collectives
