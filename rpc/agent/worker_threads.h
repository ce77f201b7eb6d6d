// Clock and executors of an agent.

#ifndef HAWSER_RPC_AGENT_WORKER_THREADS_H_
#define HAWSER_RPC_AGENT_WORKER_THREADS_H_

#include <memory>

#include "async/clock.h"
#include "async/executor.h"
#include "async/thread_pool.h"
#include "rpc/agent/agent_options.h"

namespace hawser::rpc {

// Those of AgentOptions, or else the system's clock and two thread pools: one
// for functions, and one that keeps this worker a member and lets it leave
// however busy the first is.
class WorkerThreads {
 public:
  explicit WorkerThreads(const AgentOptions& options);

  async::Clock& clock() const { return *clock_; }
  async::Executor& executor() const { return *executor_; }
  async::Executor& control_executor() const { return *control_executor_; }
  // The pool for functions; null if AgentOptions has an executor.
  const async::ThreadPool* pool() const { return pool_.get(); }

  // Runs what was posted to the pools to its end, and stops them.
  void Shutdown();

 private:
  std::unique_ptr<async::RealClock> own_clock_;
  std::unique_ptr<async::ThreadPool> pool_;
  std::unique_ptr<async::ThreadPool> control_pool_;
  async::Clock* clock_;
  async::Executor* executor_;
  async::Executor* control_executor_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_AGENT_WORKER_THREADS_H_
