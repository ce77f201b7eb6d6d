// The thread that owns an NCCL communicator.

#ifndef HAWSER_COLLECTIVES_NCCL_COMMUNICATOR_THREAD_H_
#define HAWSER_COLLECTIVES_NCCL_COMMUNICATOR_THREAD_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
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

  // Ends all operations with `status`. The first call wins.
  void Abort(const absl::Status& status);
  // Ends operations after the first `number` ones with `status`. The first call
  // wins.
  void EndAfter(int64_t number, const absl::Status& status);

 private:
  struct Operation {
    std::shared_ptr<const Backend::Mark> mark;
    Enqueue enqueue;
    async::MonotonicTime deadline = async::kNever;
    async::Promise<void> done = {};
  };

  void Loop();
  // Why the operation that runs ends before the device has done it.
  absl::Status CheckUsable() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
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
  // When the destructor ends the operation that runs.
  async::MonotonicTime end_at_ ABSL_GUARDED_BY(mutex_) = async::kNever;
  // Why all operations end, and why those above `last_number_` do.
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  absl::Status end_ ABSL_GUARDED_BY(mutex_);
  int64_t last_number_ ABSL_GUARDED_BY(mutex_) = 0;
  // Of the last operation that was begun, from 1.
  int64_t number_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<Operation> operations_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace hawser::collectives

#endif  // HAWSER_COLLECTIVES_NCCL_COMMUNICATOR_THREAD_H_
