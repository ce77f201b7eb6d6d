// Copies of what came in fragments, beside the threads that receive.

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

// Copies `from`, one slice after the other, to `to`; many bytes in a row do not
// pass through the caches. Other threads see it after
// tensor::cpu::FinishStreamCopies.
void CopySlices(const std::vector<::grpc::Slice>& from, char* to);

// One copy, which is done once, by the first thread that comes to it.
// Thread-safe.
class FragmentCopy {
 public:
  // To the bytes of `to` from `offset` on, which are as many as those of
  // `from`; keeps both until it was done or dropped.
  FragmentCopy(std::vector<::grpc::Slice> from, tensor::StoragePtr to,
               size_t offset);

  // Returns when it was done, here or in another thread, or dropped.
  void Finish();
  // It is not to be done any more; returns when no thread is at it.
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

// Hands copies to other threads. Thread-safe.
class FragmentCopier {
 public:
  // To `num_threads` of its own, which begin with the first copy; to none where
  // the machine has but one core.
  explicit FragmentCopier(int num_threads);
  // To `executor`, which runs or destroys what is posted before this is gone.
  FragmentCopier(async::Executor& executor, int max_copies);

  // Whether one more copy may be handed over, which is then to be done.
  bool Reserve();
  void Begin(std::shared_ptr<FragmentCopy> copy);

 private:
  const int max_copies_;
  std::atomic<int> num_reserved_{0};
  // Its closures use the others.
  std::optional<async::ThreadPool> threads_;
  async::Executor& executor_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_GRPC_FRAGMENTS_FRAGMENT_COPIER_H_
