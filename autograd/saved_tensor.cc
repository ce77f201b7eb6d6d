#include "autograd/saved_tensor.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace hawser::autograd {

void SavedTensor::Save(const Tensor& input) {
  async::MutexLock lock(&mutex_);
  if (!input.defined()) return;
  state_ = State::kHeld;
  version_ = input.version();
  tensor_ = input;
}

void SavedTensor::SaveOutput(const Tensor& output) {
  if (output.defined()) Save(output.Detach());
}

absl::StatusOr<Tensor> SavedTensor::Unpack() const {
  async::MutexLock lock(&mutex_);
  switch (state_) {
    case State::kUndefined:
      return Tensor();
    case State::kReleased:
      return absl::FailedPreconditionError(
          "its saved tensors were released: this runs the backward pass a "
          "second time through one graph; set retain_graph in the first pass");
    case State::kHeld:
      break;
  }
  if (tensor_.version() != version_) {
    return absl::FailedPreconditionError(absl::StrCat(
        "a saved tensor, ", tensor_.ToString(),
        ", was modified in place: it has version ", tensor_.version(),
        " and was saved at version ", version_,
        "; use the operation that returns a new tensor, or save a clone"));
  }
  return tensor_;
}

void SavedTensor::Release() {
  Tensor tensor;
  async::MutexLock lock(&mutex_);
  if (state_ != State::kHeld) return;
  state_ = State::kReleased;
  // Destroyed after the lock is released, because it may own a part of the
  // graph.
  std::swap(tensor, tensor_);
}

}  // namespace hawser::autograd
