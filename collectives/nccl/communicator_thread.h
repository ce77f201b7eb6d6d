// The thread that owns an NCCL communicator.

#ifndef HAWSER_COLLECTIVES_NCCL_COMMUNICATOR_THREAD_H_
#define HAWSER_COLLECTIVES_NCCL_COMMUNICATOR_THREAD_H_

#include <deque>
#include <memory>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/future.h"
#include "async/mutex.h"
#include "collectives/backend.h"
#include "collectives/nccl/library.h"

namespace hawser::collectives {

// Makes a communicator, runs operations on it one after the other, and releases
// it: no other thread calls NCCL for it. Thread-safe.
class CommunicatorThread {
 public:
  struct Options {
    NcclId id = {};
    int rank = 0;
    int size = 1;
    NcclConfig config = {};
  };
  // Enqueues an operation; runs in the thread.
  using Enqueue = absl::AnyInvocable<absl::Status(NcclCommunicator&)>;

  // `library` must outlive this. The communicator is made before the first
  // operation.
  CommunicatorThread(NcclLibrary& library, Options options);
  // Operations that have not begun end with kCancelled; the one that runs does
  // after a second. Releases the communicator, for which it waits up to a
  // second for other ranks.
  ~CommunicatorThread();

  // Runs `enqueue` between GroupStart and GroupEnd, after `mark`, which is not
  // null. The future completes once the device has done the operation, or with
  // the first error:
  //
  //   kDeadlineExceeded  not done by `deadline`, or the communicator not made.
  // and those of NcclLibrary, or the status of Abort. The communicator is
  // aborted before, so that the memory of the operands is not used any more;
  // later operations get the same error.
  async::Future<void> Run(std::shared_ptr<const Backend::Mark> mark,
                          Enqueue enqueue, async::MonotonicTime deadline);

  // Refuses further operations with `status`, and ends the one that runs unless
  // it ends by itself within `patience`. The first call wins.
  void Abort(const absl::Status& status,
             absl::Duration patience = absl::ZeroDuration());

 private:
  struct Operation {
    std::shared_ptr<const Backend::Mark> mark;
    Enqueue enqueue;
    async::MonotonicTime deadline = async::kNever;
    async::Promise<void> done = {};
  };

  void Loop();
  absl::Status Perform(Operation& operation);
  absl::Status MakeCommunicator(async::MonotonicTime deadline);
  absl::Status EnqueueAll(Operation& operation);
  // Until the last call of NCCL is not in progress any more.
  absl::Status WaitUntilReady(async::MonotonicTime deadline);
  absl::Status WaitUntilEnded(async::MonotonicTime deadline);
  // Calls `ready` until it returns true, an error, the deadline passes, or the
  // group is aborted.
  absl::Status Poll(absl::AnyInvocable<absl::StatusOr<bool>()> ready,
                    async::MonotonicTime deadline, const char* what);
  void Release();

  NcclLibrary& library_;
  const Options options_;
  // Of the thread alone.
  std::unique_ptr<NcclCommunicator> communicator_;

  async::Mutex mutex_;
  async::CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // Why operations are refused, and when the one that runs ends too.
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  async::MonotonicTime end_at_ ABSL_GUARDED_BY(mutex_) = async::kNever;
  // Other ranks cannot be relied on to release the communicator.
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<Operation> operations_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace hawser::collectives

#endif  // HAWSER_COLLECTIVES_NCCL_COMMUNICATOR_THREAD_H_
