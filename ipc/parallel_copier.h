// Copies of much memory by several threads.

#ifndef HAWSER_IPC_PARALLEL_COPIER_H_
#define HAWSER_IPC_PARALLEL_COPIER_H_

#include <cstddef>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "async/thread_pool.h"

namespace hawser::rpc {

// One core does not use up what the machine's memory can carry. The calling
// thread copies, and threads of this help it where cores are free: it never
// waits for one that has not begun. Thread-safe.
class ParallelCopier {
 public:
  // What is copied by one thread at a time.
  static constexpr size_t kBlockBytes = size_t{512} << 10;
  // Less is copied by the caller alone: a helper takes long to wake up.
  static constexpr size_t kMinBytes = size_t{2} << 20;

  // As many threads as cores, less the caller's, but three at most.
  ParallelCopier();
  // Not on a thread that copies.
  ~ParallelCopier() = default;

  // Calls `copy(offset, size)` for the blocks that make up `size` bytes, in any
  // order and in several threads at once. Returns when none is being copied,
  // with an error if there was one; blocks may be left out then.
  absl::Status Copy(size_t size,
                    absl::FunctionRef<absl::Status(size_t, size_t)> copy);

 private:
  struct Job;

  const int num_helpers_;
  async::ThreadPool threads_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_IPC_PARALLEL_COPIER_H_
