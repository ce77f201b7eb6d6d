#ifndef HAWSER_AUTOGRAD_SAVED_TENSOR_H_
#define HAWSER_AUTOGRAD_SAVED_TENSOR_H_

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "async/mutex.h"
#include "tensor/tensor.h"

namespace hawser::autograd {

// A tensor that a node keeps for its backward step, with its version.
//
// Thread-safe: one pass may release it while another reads it, which then gets
// either the tensor or the error.
class SavedTensor {
 public:
  SavedTensor() = default;
  SavedTensor(const SavedTensor&) = delete;
  SavedTensor& operator=(const SavedTensor&) = delete;

  // Keeps `input`, a tensor that the operation read; it may be undefined. The
  // node that saves `input` must not be its producer.
  void Save(const Tensor& input);

  // Keeps `output`, which the saving node itself produces, without its history:
  // a node that kept its own output would never be released.
  void SaveOutput(const Tensor& output);

  // Returns the tensor; undefined if an undefined one, or none, was saved.
  //
  //   kFailedPrecondition  written in place since it was saved, or released by
  //                        an earlier backward pass. Node::Run adds the name
  //                        of the operation.
  absl::StatusOr<Tensor> Unpack() const;

  void Release();

 private:
  enum class State : uint8_t { kUndefined, kHeld, kReleased };

  mutable async::Mutex mutex_;
  State state_ ABSL_GUARDED_BY(mutex_) = State::kUndefined;
  uint64_t version_ ABSL_GUARDED_BY(mutex_) = 0;
  Tensor tensor_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::autograd

#endif  // HAWSER_AUTOGRAD_SAVED_TENSOR_H_
