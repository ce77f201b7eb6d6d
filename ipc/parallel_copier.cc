#include "ipc/parallel_copier.h"

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "async/mutex.h"

namespace hawser::ipc {
namespace {

constexpr int kMaxHelpers = 3;

}  // namespace

// Outlives the call if a helper thread starts late; it then finds no block
// left.
struct ParallelCopier::Job {
  Job(size_t job_size, absl::FunctionRef<absl::Status(size_t, size_t)> job_copy)
      : size(job_size), copy(job_copy) {}

  // Copies blocks until none are left.
  void Run() {
    while (true) {
      size_t begin = 0;
      {
        async::MutexLock lock(&mutex);
        if (next >= size) return;
        begin = next;
        next += kBlockBytes;
        ++num_running;
      }
      absl::Status status = copy(begin, std::min(kBlockBytes, size - begin));
      async::MutexLock lock(&mutex);
      if (!status.ok()) {
        result.Update(std::move(status));
        next = size;
      }
      if (--num_running == 0 && next >= size) ended.NotifyAll();
    }
  }

  const size_t size;
  // Valid while a block is left or being copied.
  const absl::FunctionRef<absl::Status(size_t, size_t)> copy;

  async::Mutex mutex;
  async::CondVar ended;
  size_t next ABSL_GUARDED_BY(mutex) = 0;
  int num_running ABSL_GUARDED_BY(mutex) = 0;
  absl::Status result ABSL_GUARDED_BY(mutex);
};

ParallelCopier::ParallelCopier()
    : num_helpers_(
          std::clamp(static_cast<int>(std::thread::hardware_concurrency()) - 1,
                     0, kMaxHelpers)),
      threads_({.num_threads = std::max(num_helpers_, 1),
                .max_threads = std::max(num_helpers_, 1),
                .name = "rpc-copy"}) {}

absl::Status ParallelCopier::Copy(
    size_t size, absl::FunctionRef<absl::Status(size_t, size_t)> copy) {
  if (size < kMinBytes || num_helpers_ == 0) return copy(0, size);
  const auto job = std::make_shared<Job>(size, copy);
  for (int i = 0; i < num_helpers_; ++i) {
    threads_.Post([job] { job->Run(); });
  }
  job->Run();
  async::MutexLock lock(&job->mutex);
  while (job->num_running > 0) job->ended.Wait(&job->mutex);
  return job->result;
}

}  // namespace hawser::ipc
