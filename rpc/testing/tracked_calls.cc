#include "rpc/testing/tracked_calls.h"

#include "absl/strings/str_cat.h"
#include "rpc/errors/error_detail.h"

namespace hawser::rpc {

int64_t TrackedCalls::Begin(Incarnation pinned) {
  const int64_t number = static_cast<int64_t>(calls_.size()) + 1;
  calls_[number].pinned = pinned;
  return number;
}

int64_t TrackedCalls::BeginIfRun() {
  const int64_t number = Begin();
  calls_[number].certain = false;
  return number;
}

std::string TrackedCalls::Executed(int64_t number, Incarnation worker) {
  Call& call = calls_[number];
  if (++call.executions > 1) return absl::StrCat("call ", number, " ran twice");
  if (ToNumber(call.pinned) != 0 && call.pinned != worker) {
    return absl::StrCat("call ", number, " ran on another incarnation");
  }
  return "";
}

void TrackedCalls::Ended(int64_t number, const absl::Status& outcome) {
  Call& call = calls_[number];
  ++call.completions;
  call.outcome = outcome;
}

std::string TrackedCalls::Check() const {
  for (const auto& [number, call] : calls_) {
    if (!call.certain && call.completions == 0 && call.executions == 0) {
      continue;
    }
    if (call.completions != 1) {
      return absl::StrCat("call ", number, " ended ", call.completions,
                          " times");
    }
    if (call.outcome.ok()) {
      if (call.executions == 1) continue;
      return absl::StrCat("call ", number, " succeeded and did not run");
    }
    const auto detail = GetErrorDetail(call.outcome);
    if (!detail.has_value()) {
      return absl::StrCat("call ", number, " failed without saying where: ",
                          call.outcome.ToString());
    }
    if (call.executions == 0) continue;
    if (!detail->maybe_applied) {
      return absl::StrCat("call ", number, " ran, but says it did not: ",
                          call.outcome.ToString());
    }
  }
  return "";
}

}  // namespace hawser::rpc
