#ifndef HAWSER_DIST_AUTOGRAD_IDS_H_
#define HAWSER_DIST_AUTOGRAD_IDS_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace hawser::dist_autograd {

// Id of a distributed autograd context: the creator's worker id in the top 16
// bits, a counter of that worker below. Messages name the creator's incarnation
// beside it.
enum class ContextId : uint64_t {};

// Id of a forward message with tensors that require gradients, of the same
// form. 0 is none.
enum class AutogradMessageId : uint64_t {};

constexpr uint64_t ToNumber(ContextId id) { return static_cast<uint64_t>(id); }
constexpr uint64_t ToNumber(AutogradMessageId id) {
  return static_cast<uint64_t>(id);
}

// The worker that created an id.
constexpr int32_t CreatorOf(ContextId id) {
  return static_cast<int32_t>(ToNumber(id) >> 48);
}
constexpr int32_t CreatorOf(AutogradMessageId id) {
  return static_cast<int32_t>(ToNumber(id) >> 48);
}

// The creator's id and the counter, as in "2:17".
std::string ToString(ContextId id);
std::string ToString(AutogradMessageId id);

// Generates the ids of one worker. Thread-safe.
class IdSource {
 public:
  // `start` is the first value of the counter. Successive incarnations of a
  // worker should start far apart. Only its low 47 bits are used.
  IdSource(int32_t worker, uint64_t start);

  // kInternal once the 48 bits of the counter are used up.
  absl::StatusOr<ContextId> NextContextId();
  absl::StatusOr<AutogradMessageId> NextMessageId();

 private:
  absl::StatusOr<uint64_t> Next();

  const uint64_t prefix_;
  std::atomic<uint64_t> next_;
};

}  // namespace hawser::dist_autograd

#endif  // HAWSER_DIST_AUTOGRAD_IDS_H_
