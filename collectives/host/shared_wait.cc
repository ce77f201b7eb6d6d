#include "collectives/host/shared_wait.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "async/blocking_region.h"
#include "async/cpu_relax.h"
#include "ipc/shared_futex.h"

namespace hawser::collectives {
namespace {

// Longer than the wake-up of a sleeping thread takes, and than ranks that do
// the same work differ within a step.
constexpr std::chrono::microseconds kSpinTime(200);
// Between looks at the clock.
constexpr int kSpinsPerLook = 64;
// Between checks for dead ranks.
constexpr absl::Duration kCheckInterval = absl::Milliseconds(100);

}  // namespace

bool SharedWait::Pause(async::MonotonicTime begin) const {
  if (options_.crowded) {
    sched_yield();
  } else {
    async::CpuRelax();
  }
  return std::chrono::steady_clock::now() < begin + kSpinTime;
}

bool SharedWait::Spin(absl::FunctionRef<bool()> ready) const {
  const std::atomic<uint32_t>& aborted = region_.header().aborted_by;
  const auto done = [&] {
    return ready() || aborted.load(std::memory_order_relaxed) != 0;
  };
  const async::MonotonicTime begin = std::chrono::steady_clock::now();
  do {
    // Of a core of its own, most waits are shorter than a look at the clock.
    const int spins = options_.crowded ? 0 : kSpinsPerLook;
    for (int i = 0; i < spins; ++i) {
      if (done()) return true;
      async::CpuRelax();
    }
    if (done()) return true;
  } while (Pause(begin));
  return false;
}

absl::Status SharedWait::Until(
    absl::FunctionRef<bool()> ready, const std::atomic<uint32_t>& word,
    std::atomic<uint32_t>& sleepers, async::MonotonicTime deadline,
    absl::FunctionRef<absl::Status()> check,
    absl::FunctionRef<absl::Status()> timeout_error) {
  const async::BlockingRegion blocking;
  if (!Spin(ready)) {
    sleepers.fetch_add(1, std::memory_order_seq_cst);
    absl::Status failed;
    while (failed.ok()) {
      const uint32_t seen = word.load(std::memory_order_seq_cst);
      if (ready() || !status().ok()) break;
      const async::MonotonicTime now = std::chrono::steady_clock::now();
      if (now >= deadline) {
        failed = timeout_error();
        break;
      }
      if (failed = check(); !failed.ok()) {
        // It may have been ready, and then have left.
        if (ready()) failed = absl::OkStatus();
        break;
      }
      ipc::SharedFutexWait(
          word, seen, std::min(deadline, async::AddDelay(now, kCheckInterval)));
    }
    sleepers.fetch_sub(1, std::memory_order_relaxed);
    if (!failed.ok()) return Abort(failed);
  }
  // A result that is there counts, though the group has ended since.
  return ready() ? absl::OkStatus() : status();
}

absl::Status SharedWait::CheckRank(int rank) const {
  if (region_.rank(rank).left.load(std::memory_order_acquire) != 0) {
    return absl::UnavailableError(
        absl::StrCat(NameOf(rank), " has left the group"));
  }
  return options_.check_alive == nullptr
             ? absl::OkStatus()
             : options_.check_alive(rank, NameOf(rank));
}

int SharedWait::NumberOf(int rank) const {
  const auto index = static_cast<size_t>(rank);
  return options_.numbers.empty() ? rank : options_.numbers[index];
}

std::string SharedWait::NameOf(int rank) const {
  return absl::StrCat("rank ", NumberOf(rank));
}

absl::Status SharedWait::LateError(std::vector<int> late) const {
  for (int& rank : late) rank = NumberOf(rank);
  if (options_.late_error != nullptr) return options_.late_error(late);
  return absl::DeadlineExceededError(
      absl::StrCat(late.size() == 1 ? "rank " : "ranks ",
                   absl::StrJoin(late, ", "), " did not take part in time"));
}

void SharedWait::Leave() {
  RankState& state = region_.rank(options_.rank);
  state.left.store(1, std::memory_order_release);
  WakeAll();
}

void SharedWait::WakeAll() const {
  for (int rank = 0; rank < region_.layout().size; ++rank) {
    const RankState& state = region_.rank(rank);
    ipc::SharedFutexWakeAll(state.step);
    ipc::SharedFutexWakeAll(state.doorbell);
  }
}

void SharedWait::Wake(const std::atomic<uint32_t>& word,
                      const std::atomic<uint32_t>& sleepers) {
  // After the change of the word: a thread that is not seen here sees the
  // change before it sleeps.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (sleepers.load(std::memory_order_relaxed) > 0) {
    ipc::SharedFutexWakeAll(word);
  }
}

absl::Status SharedWait::Abort(const absl::Status& status) {
  std::atomic<uint32_t>& aborted_by = region_.header().aborted_by;
  {
    const async::MutexLock lock(&mutex_);
    if (own_abort_.ok()) {
      RankState& self = region_.rank(options_.rank);
      self.abort_code = static_cast<int32_t>(status.code());
      const std::string reason(status.message());
      const size_t length =
          std::min(reason.size(), sizeof(self.abort_reason) - 1);
      std::memcpy(self.abort_reason, reason.data(), length);
      self.abort_reason[length] = '\0';
      own_abort_ = status;
    }
  }
  uint32_t nobody = 0;
  const bool first = aborted_by.compare_exchange_strong(
      nobody, static_cast<uint32_t>(options_.rank) + 1,
      std::memory_order_acq_rel);
  if (first) WakeAll();
  return AbortStatus();
}

absl::Status SharedWait::AbortStatus() const {
  const auto by = static_cast<int>(region_.header().aborted_by.load(
                      std::memory_order_acquire)) -
                  1;
  if (by == options_.rank) {
    const async::MutexLock lock(&mutex_);
    return own_abort_;
  }
  // Of a value that no rank has written, do not read beyond the region.
  if (by < 0 || by >= region_.layout().size) {
    return absl::DataLossError("the shared memory of the group is damaged");
  }
  const RankState& other = region_.rank(by);
  const std::string reason(
      other.abort_reason,
      strnlen(other.abort_reason, sizeof(other.abort_reason)));
  // The death of a rank is the same news to all.
  if (other.abort_code == static_cast<int>(absl::StatusCode::kUnavailable)) {
    return absl::UnavailableError(reason);
  }
  return absl::AbortedError(
      absl::StrCat(NameOf(by), " has ended the group: ", reason));
}

}  // namespace hawser::collectives
