// Copies of large memory ranges by several threads.

#ifndef HAWSER_IPC_PARALLEL_COPIER_H_
#define HAWSER_IPC_PARALLEL_COPIER_H_

#include <cstddef>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "async/thread_pool.h"

namespace hawser::ipc {

// One core does not saturate the memory bandwidth of a machine. The calling
// thread copies, and helper threads of this object copy too where cores are
// idle. The caller never waits for a helper that has not started. Thread-safe.
class ParallelCopier {
 public:
  // Unit of work of a thread.
  static constexpr size_t kBlockBytes = size_t{1} << 20;
  // The caller copies smaller ranges alone, since helpers take long to wake up.
  static constexpr size_t kMinBytes = size_t{2} << 20;

  // Starts one thread per core except the caller's, at most three.
  ParallelCopier();
  // Must not run on a helper thread.
  ~ParallelCopier() = default;

  // Calls `copy(offset, size)` for each block of the `size` bytes, in any order
  // and in several threads concurrently. Returns when no block is being copied
  // any more, with an error if a call failed; remaining blocks may then be
  // skipped.
  absl::Status Copy(size_t size,
                    absl::FunctionRef<absl::Status(size_t, size_t)> copy);

 private:
  struct Job;

  const int num_helpers_;
  async::ThreadPool threads_;
};

}  // namespace hawser::ipc

#endif  // HAWSER_IPC_PARALLEL_COPIER_H_
