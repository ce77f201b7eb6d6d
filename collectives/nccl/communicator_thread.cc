#include "collectives/nccl/communicator_thread.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/status_macros.h"

namespace hawser::collectives {
namespace {

// A thread that waits for the device looks all the time at first, then at these
// intervals.
constexpr std::chrono::microseconds kSpinTime(500);
constexpr std::chrono::microseconds kNap(50);

// Of the destructor: for the operation that runs, and for the other ranks to
// release the communicator too.
constexpr absl::Duration kPatience = absl::Seconds(1);

async::MonotonicTime EndOfPatience() {
  return async::AddDelay(std::chrono::steady_clock::now(), kPatience);
}

absl::Status Destroyed() {
  return absl::CancelledError("the process group was destroyed");
}

}  // namespace

CommunicatorThread::CommunicatorThread(NcclLibrary& library, Options options)
    : library_(library),
      options_(std::move(options)),
      thread_([this] { Loop(); }) {}

CommunicatorThread::~CommunicatorThread() {
  {
    const async::MutexLock lock(&mutex_);
    stopping_ = true;
    end_at_ = std::min(end_at_, EndOfPatience());
    changed_.NotifyAll();
  }
  thread_.join();
}

async::Future<void> CommunicatorThread::Run(
    std::shared_ptr<const Backend::Mark> mark, Enqueue enqueue,
    async::MonotonicTime deadline) {
  Operation operation{.mark = std::move(mark),
                      .enqueue = std::move(enqueue),
                      .deadline = deadline};
  async::Future<void> done = operation.done.future();
  const async::MutexLock lock(&mutex_);
  operations_.push_back(std::move(operation));
  changed_.NotifyAll();
  return done;
}

void CommunicatorThread::Abort(const absl::Status& status) {
  const async::MutexLock lock(&mutex_);
  if (failure_.ok()) failure_ = status;
  changed_.NotifyAll();
}

void CommunicatorThread::EndAfter(int64_t number, const absl::Status& status) {
  const async::MutexLock lock(&mutex_);
  if (!end_.ok()) return;
  end_ = status;
  last_number_ = number;
  changed_.NotifyAll();
}

absl::Status CommunicatorThread::CheckUsable() {
  RETURN_IF_ERROR(failure_);
  return number_ > last_number_ ? end_ : absl::OkStatus();
}

void CommunicatorThread::Loop() {
  while (true) {
    Operation operation;
    {
      const async::MutexLock lock(&mutex_);
      while (!stopping_ && operations_.empty()) changed_.Wait(&mutex_);
      if (stopping_) break;
      ++number_;
      operation = std::move(operations_.front());
      operations_.pop_front();
    }
    absl::Status status = Perform(operation);
    if (!status.ok()) {
      Abort(status);
      if (communicator_ != nullptr) {
        communicator_->Abort();
        communicator_ = nullptr;
      }
    }
    // Frees its tensors before others see the result.
    operation.enqueue = nullptr;
    operation.done.Set(std::move(status));
  }
  Release();
  std::deque<Operation> left;
  {
    const async::MutexLock lock(&mutex_);
    left.swap(operations_);
  }
  for (Operation& each : left) {
    each.done.Set(Destroyed());
  }
}

absl::Status CommunicatorThread::Perform(Operation& operation) {
  {
    const async::MutexLock lock(&mutex_);
    RETURN_IF_ERROR(CheckUsable());
  }
  if (communicator_ == nullptr) {
    RETURN_IF_ERROR(MakeCommunicator(operation.deadline));
  }
  RETURN_IF_ERROR(communicator_->WaitFor(*operation.mark));
  RETURN_IF_ERROR(EnqueueAll(operation));
  RETURN_IF_ERROR(WaitUntilReady(operation.deadline));
  RETURN_IF_ERROR(communicator_->RecordEnd());
  return WaitUntilEnded(operation.deadline);
}

absl::Status CommunicatorThread::MakeCommunicator(
    async::MonotonicTime deadline) {
  ASSIGN_OR_RETURN(communicator_,
                   library_.CommInitRank(options_.id, options_.rank,
                                         options_.size, options_.config));
  return WaitUntilReady(deadline);
}

absl::Status CommunicatorThread::EnqueueAll(Operation& operation) {
  RETURN_IF_ERROR(communicator_->GroupStart());
  absl::Status status = operation.enqueue(*communicator_);
  // Also after an error: groups nest, and belong to the thread.
  absl::Status ended = communicator_->GroupEnd();
  return status.ok() ? ended : status;
}

absl::Status CommunicatorThread::WaitUntilReady(async::MonotonicTime deadline) {
  return Poll([this] { return communicator_->GetAsyncError(); }, deadline,
              "NCCL has not connected the ranks");
}

absl::Status CommunicatorThread::WaitUntilEnded(async::MonotonicTime deadline) {
  return Poll(
      [this]() -> absl::StatusOr<bool> {
        ASSIGN_OR_RETURN(const bool ended, communicator_->HasEnded());
        if (ended) return true;
        RETURN_IF_ERROR(communicator_->GetAsyncError().status());
        return false;
      },
      deadline, "the operation has not ended on the device");
}

absl::Status CommunicatorThread::Poll(
    absl::AnyInvocable<absl::StatusOr<bool>()> ready,
    async::MonotonicTime deadline, const char* what) {
  const async::MonotonicTime begin = std::chrono::steady_clock::now();
  while (true) {
    ASSIGN_OR_RETURN(const bool is_ready, ready());
    if (is_ready) return absl::OkStatus();
    const async::MonotonicTime now = std::chrono::steady_clock::now();
    if (now >= deadline) {
      return absl::DeadlineExceededError(absl::StrCat(what, " in time"));
    }
    const async::MutexLock lock(&mutex_);
    RETURN_IF_ERROR(CheckUsable());
    if (now >= end_at_) return Destroyed();
    if (now < begin + kSpinTime) continue;
    changed_.WaitUntil(&mutex_, std::min(deadline, now + kNap));
  }
}

void CommunicatorThread::Release() {
  if (communicator_ == nullptr) return;
  absl::Status status;
  {
    const async::MutexLock lock(&mutex_);
    status = failure_;
    end_at_ = async::kNever;
  }
  if (status.ok()) status = communicator_->Finalize();
  if (status.ok()) {
    status = WaitUntilReady(EndOfPatience());
  }
  if (status.ok()) {
    communicator_->Destroy();
  } else {
    communicator_->Abort();
  }
  communicator_ = nullptr;
}

}  // namespace hawser::collectives
