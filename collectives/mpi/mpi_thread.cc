#include "collectives/mpi/mpi_thread.h"

#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/future.h"
#include "async/status_macros.h"

namespace hawser::collectives {
namespace {

// MPI has no wait that another thread could end. The thread looks all the time
// for a while after the last event, then at intervals.
constexpr std::chrono::microseconds kSpinTime(500);
constexpr std::chrono::microseconds kInterval(500);

}  // namespace

absl::Status MpiStatus(int error, const std::string& function) {
  if (error == MPI_SUCCESS) [[likely]]
    return absl::OkStatus();
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  if (MPI_Error_string(error, text, &length) != MPI_SUCCESS) length = 0;
  return absl::InternalError(absl::StrCat(
      function, ": ", std::string(text, static_cast<size_t>(length))));
}

absl::StatusOr<MpiThread*> MpiThread::Get() {
  // Lives as long as the process: MPI cannot begin again.
  static auto* const self = [] {
    auto* const thread = new MpiThread();
    thread->begun_ = thread->Run([thread] { return thread->Begin(); });
    std::atexit([] {
      const absl::StatusOr<MpiThread*> existing = Get();
      if (existing.ok()) (*existing)->End();
    });
    return thread;
  }();
  RETURN_IF_ERROR(self->begun_);
  return self;
}

MpiThread::MpiThread() : thread_([this] { Loop(); }) {}

absl::Status MpiThread::Begin() {
  int finalized = 0;
  int initialized = 0;
  RETURN_IF_ERROR(MpiStatus(MPI_Finalized(&finalized), "MPI_Finalized"));
  RETURN_IF_ERROR(MpiStatus(MPI_Initialized(&initialized), "MPI_Initialized"));
  if (finalized != 0) {
    return absl::FailedPreconditionError(
        "the program has ended MPI, which cannot begin again");
  }
  int level = MPI_THREAD_SINGLE;
  if (initialized != 0) {
    RETURN_IF_ERROR(MpiStatus(MPI_Query_thread(&level), "MPI_Query_thread"));
    if (level < MPI_THREAD_SERIALIZED) {
      return absl::FailedPreconditionError(
          "the program has begun MPI for one thread: begin it with "
          "MPI_THREAD_SERIALIZED, or leave it to the process group");
    }
  } else {
    RETURN_IF_ERROR(MpiStatus(
        MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level),
        "MPI_Init_thread"));
    ends_mpi_ = true;
    if (level < MPI_THREAD_FUNNELED) {
      return absl::FailedPreconditionError(
          "this MPI was built without support for threads");
    }
  }
  RETURN_IF_ERROR(
      MpiStatus(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank"));
  return MpiStatus(MPI_Comm_size(MPI_COMM_WORLD, &size_), "MPI_Comm_size");
}

void MpiThread::Post(absl::AnyInvocable<void()> call) {
  const async::MutexLock lock(&mutex_);
  calls_.push_back(std::move(call));
  posted_.NotifyAll();
}

absl::Status MpiThread::Run(absl::AnyInvocable<absl::Status()> call) {
  async::Promise<void> done;
  const async::Future<void> result = done.future();
  Post([call = std::move(call), done = std::move(done)]() mutable {
    done.Set(call());
  });
  return result.Wait();
}

void MpiThread::Remove(Poller* poller) { std::erase(pollers_, poller); }

bool MpiThread::RunPosted(bool may_sleep) {
  std::deque<absl::AnyInvocable<void()>> calls;
  {
    const async::MutexLock lock(&mutex_);
    if (may_sleep && calls_.empty() && !exiting_) {
      posted_.WaitUntil(&mutex_,
                        pollers_.empty()
                            ? async::kNever
                            : std::chrono::steady_clock::now() + kInterval);
    }
    if (calls_.empty() && exiting_) return false;
    calls.swap(calls_);
  }
  for (auto& call : calls) call();
  return true;
}

void MpiThread::Loop() {
  async::MonotonicTime last_event = std::chrono::steady_clock::now();
  bool may_sleep = true;
  while (RunPosted(may_sleep)) {
    bool any = false;
    for (Poller* const poller : pollers_) any = poller->Poll() || any;
    const async::MonotonicTime now = std::chrono::steady_clock::now();
    if (any) last_event = now;
    may_sleep = now >= last_event + kSpinTime;
    // The other ranks may need this core.
    if (!any && !may_sleep) sched_yield();
  }
  if (ends_mpi_) MPI_Finalize();
}

void MpiThread::End() {
  {
    const async::MutexLock lock(&mutex_);
    exiting_ = true;
    posted_.NotifyAll();
  }
  thread_.join();
}

}  // namespace hawser::collectives
