#ifndef HAWSER_DIST_AUTOGRAD_IDS_H_
#define HAWSER_DIST_AUTOGRAD_IDS_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace hawser::dist_autograd {

// Names a distributed autograd context: the id of the worker that made it in
// the top 16 bits, a counter of that worker below. Runs of that worker differ
// in the incarnation, which travels beside the id.
enum class ContextId : uint64_t {};

// Names a forward message that carried tensors which require gradients; same
// scheme. 0 is none.
enum class AutogradMessageId : uint64_t {};

constexpr uint64_t ToNumber(ContextId id) { return static_cast<uint64_t>(id); }
constexpr uint64_t ToNumber(AutogradMessageId id) {
  return static_cast<uint64_t>(id);
}

// The worker that made an id.
constexpr int32_t CreatorOf(ContextId id) {
  return static_cast<int32_t>(ToNumber(id) >> 48);
}
constexpr int32_t CreatorOf(AutogradMessageId id) {
  return static_cast<int32_t>(ToNumber(id) >> 48);
}

// As "2:17": the creator's id and the counter.
std::string ToString(ContextId id);
std::string ToString(AutogradMessageId id);

// Gives out the ids of one worker. Thread-safe.
class IdSource {
 public:
  // `start` is where the counter begins: runs of one worker that follow each
  // other should begin far apart. Only its low 47 bits are used.
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
