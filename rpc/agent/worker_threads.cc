#include "rpc/agent/worker_threads.h"

#include <algorithm>

namespace hawser::rpc {
namespace {

// Threads that access the store: for lookups, for the membership, and for the
// leave.
constexpr int kMaxControlThreads = 8;

}  // namespace

WorkerThreads::WorkerThreads(const AgentOptions& options)
    : clock_(options.clock),
      executor_(options.executor),
      control_executor_(options.executor) {
  if (clock_ == nullptr) {
    own_clock_ = std::make_unique<async::RealClock>();
    clock_ = own_clock_.get();
  }
  if (executor_ != nullptr) return;
  pool_ = std::make_unique<async::ThreadPool>(async::ThreadPoolOptions{
      .num_threads = options.num_threads,
      .max_threads = std::max(options.num_threads + 1, options.max_threads),
      .name = "rpc"});
  control_pool_ = std::make_unique<async::ThreadPool>(
      async::ThreadPoolOptions{.num_threads = 1,
                               .max_threads = kMaxControlThreads,
                               .name = "rpc-control"});
  executor_ = pool_.get();
  control_executor_ = control_pool_.get();
}

void WorkerThreads::Shutdown() {
  if (control_pool_ != nullptr) control_pool_->Shutdown();
  if (pool_ != nullptr) pool_->Shutdown();
}

}  // namespace hawser::rpc
