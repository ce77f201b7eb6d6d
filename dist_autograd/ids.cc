#include "dist_autograd/ids.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace hawser::dist_autograd {
namespace {

constexpr int kCounterBits = 48;
constexpr uint64_t kCounterMask = (uint64_t{1} << kCounterBits) - 1;

std::string IdToString(uint64_t id) {
  return absl::StrCat(id >> kCounterBits, ":", id & kCounterMask);
}

}  // namespace

std::string ToString(ContextId id) { return IdToString(ToNumber(id)); }
std::string ToString(AutogradMessageId id) { return IdToString(ToNumber(id)); }

IdSource::IdSource(int32_t worker, uint64_t start)
    : prefix_(static_cast<uint64_t>(worker) << kCounterBits),
      next_((start & (kCounterMask >> 1)) + 1) {}

absl::StatusOr<ContextId> IdSource::NextContextId() {
  absl::StatusOr<uint64_t> id = Next();
  if (!id.ok()) return id.status();
  return ContextId{*id};
}

absl::StatusOr<AutogradMessageId> IdSource::NextMessageId() {
  absl::StatusOr<uint64_t> id = Next();
  if (!id.ok()) return id.status();
  return AutogradMessageId{*id};
}

absl::StatusOr<uint64_t> IdSource::Next() {
  const uint64_t counter = next_.fetch_add(1, std::memory_order_relaxed);
  if (counter > kCounterMask) {
    return absl::InternalError(
        "all distributed autograd ids of this worker are used: restart it");
  }
  return prefix_ | counter;
}

}  // namespace hawser::dist_autograd
