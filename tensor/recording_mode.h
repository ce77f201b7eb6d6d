// Per-thread mode in which operations treat tensors that require gradients.

#ifndef HAWSER_TENSOR_RECORDING_MODE_H_
#define HAWSER_TENSOR_RECORDING_MODE_H_

#include <cstdint>
#include <utility>

namespace hawser::tensor {

// Raw operations are those of tensor/, which record nothing; recorded ones are
// those of autograd/.
enum class RecordingMode : uint8_t {
  // Recorded operations are recorded. Raw ones refuse tensors that require
  // gradients.
  kRecord,
  // As kRecord, within an operation that answers for the gradients of its
  // operands: raw operations take any tensor.
  kWithinOperation,
  // Nothing is recorded. Raw operations take any tensor.
  kOff,
};

namespace internal {
inline thread_local constinit RecordingMode recording_mode =
    RecordingMode::kRecord;
}  // namespace internal

// The mode of this thread: kRecord in a new one.
inline RecordingMode ThreadRecordingMode() { return internal::recording_mode; }

// Sets the mode of this thread until the end of the scope.
class [[nodiscard]] RecordingModeScope {
 public:
  explicit RecordingModeScope(RecordingMode mode)
      : previous_(std::exchange(internal::recording_mode, mode)) {}
  ~RecordingModeScope() { internal::recording_mode = previous_; }
  RecordingModeScope(const RecordingModeScope&) = delete;
  RecordingModeScope& operator=(const RecordingModeScope&) = delete;

 private:
  const RecordingMode previous_;
};

// Lets raw operations take any tensor until the end of the scope. For the body
// of an operation that records itself as a whole or has no gradient.
class [[nodiscard]] RawOperationsScope {
 public:
  RawOperationsScope() = default;
  RawOperationsScope(const RawOperationsScope&) = delete;
  RawOperationsScope& operator=(const RawOperationsScope&) = delete;

 private:
  const RecordingModeScope scope_{ThreadRecordingMode() ==
                                          RecordingMode::kRecord
                                      ? RecordingMode::kWithinOperation
                                      : ThreadRecordingMode()};
};

}  // namespace hawser::tensor

#endif  // HAWSER_TENSOR_RECORDING_MODE_H_
