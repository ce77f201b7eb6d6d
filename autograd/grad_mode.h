// Recording mode of a thread.

#ifndef HAWSER_AUTOGRAD_GRAD_MODE_H_
#define HAWSER_AUTOGRAD_GRAD_MODE_H_

#include "tensor/recording_mode.h"

namespace hawser::autograd {

// Whether operations of this thread are recorded; true in a new thread. The
// mode belongs to the thread and does not follow work to other threads.
inline bool GradEnabled() {
  return tensor::ThreadRecordingMode() != tensor::RecordingMode::kOff;
}

// Switches recording off in this thread until the end of the scope. Operations
// of tensor/ then accept tensors that require gradients.
class [[nodiscard]] NoGradGuard {
 public:
  NoGradGuard() = default;
  NoGradGuard(const NoGradGuard&) = delete;
  NoGradGuard& operator=(const NoGradGuard&) = delete;

 private:
  const tensor::RecordingModeScope scope_{tensor::RecordingMode::kOff};
};

// Switches recording on in this thread until the end of the scope.
class [[nodiscard]] EnableGradGuard {
 public:
  EnableGradGuard() = default;
  EnableGradGuard(const EnableGradGuard&) = delete;
  EnableGradGuard& operator=(const EnableGradGuard&) = delete;

 private:
  const tensor::RecordingModeScope scope_{tensor::RecordingMode::kRecord};
};

}  // namespace hawser::autograd

#endif  // HAWSER_AUTOGRAD_GRAD_MODE_H_
