// Copying of received fragments by helper threads.

#ifndef HAWSER_RPC_GRPC_FRAGMENTS_FRAGMENT_COPIER_H_
#define HAWSER_RPC_GRPC_FRAGMENTS_FRAGMENT_COPIER_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "async/executor.h"
#include "async/mutex.h"
#include "async/thread_pool.h"
#include "grpcpp/support/slice.h"
#include "tensor/memory/storage.h"

namespace hawser::rpc {

// Copies the slices of `from`, in order, to `to`. Large copies bypass the
// caches. Other threads see the bytes after tensor::cpu::FinishStreamCopies.
void CopySlices(const std::vector<::grpc::Slice>& from, char* to);

// One copy, executed once by the first thread that claims it. Thread-safe.
class FragmentCopy {
 public:
  // Copies `from` to `to` from `offset` on, where it must fit. Keeps both alive
  // until the copy is done or dropped.
  FragmentCopy(std::vector<::grpc::Slice> from, tensor::StoragePtr to,
               size_t offset);

  // Executes the copy, or waits for another thread that executes it. Returns
  // when it is done or dropped.
  void Finish();
  // Drops the copy; returns when no thread is executing it.
  void Drop();

 private:
  void EndLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t offset_;
  std::atomic<bool> ended_{false};

  // Held while copying.
  async::Mutex mutex_;
  std::vector<::grpc::Slice> from_ ABSL_GUARDED_BY(mutex_);
  // Null once `ended_`.
  tensor::StoragePtr to_ ABSL_GUARDED_BY(mutex_);
};

// Distributes copies to other threads. Thread-safe.
class FragmentCopier {
 public:
  // Uses `num_threads` threads of its own, started with the first copy, or none
  // on a machine with one core.
  explicit FragmentCopier(int num_threads);
  // Uses `executor`, which must run or destroy posted closures before this
  // object is destroyed.
  FragmentCopier(async::Executor& executor, int max_copies);

  // Reserves one more copy; returns false if the limit is reached. A reserved
  // copy must then be posted.
  bool Reserve();
  void Begin(std::shared_ptr<FragmentCopy> copy);

 private:
  const int max_copies_;
  std::atomic<int> num_reserved_{0};
  // Last, because its closures use the other members.
  std::optional<async::ThreadPool> threads_;
  async::Executor& executor_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_GRPC_FRAGMENTS_FRAGMENT_COPIER_H_
