#include <utility>

#include "async/blocking_region.h"
#include "rpc/agent/agent_impl.h"
#include "rpc/agent/graceful_leave.h"

namespace hawser::rpc {

async::Future<void> Agent::Impl::Leave() {
  std::shared_ptr<GracefulLeave> leave;
  bool begin = false;
  {
    async::MutexLock lock(&mutex_);
    if (graceful_leave_ == nullptr) {
      if (shutdown_begun_ || !joined_.load(std::memory_order_acquire)) {
        return async::MakeReadyFuture<void>(absl::FailedPreconditionError(
            shutdown_begun_ ? "the agent was shut down"
                            : "the worker has not joined its job"));
      }
      graceful_leave_ = std::make_shared<GracefulLeave>(this);
      begin = true;
    }
    leave = graceful_leave_;
  }
  if (begin) {
    options_.transport->SetServing(false);
    leave->Begin();
  }
  // Whoever cancels it cancels no one else's.
  return leave->future().Then([](absl::Status status) { return status; });
}

bool Agent::Impl::shutdown_begun() const {
  async::MutexLock lock(&mutex_);
  return shutdown_begun_;
}

// Before the worker says that it did not leave.
void Agent::Impl::AbandonLeave() {
  // Callbacks of the future may not shut this agent down.
  InsideScope inside(this);
  std::shared_ptr<GracefulLeave> leave;
  {
    async::MutexLock lock(&mutex_);
    leave = graceful_leave_;
  }
  if (leave != nullptr) leave->Abandon();
}

// 1. No calls begin; the transport ends those under way, in both directions.
// 2. What was posted runs to its end, and finds calls refused and its waiting
//    for services ended.
// 3. Nothing is left that could use the services: they stop.
void Agent::Impl::Stop() {
  phase_.store(Phase::kStopping, std::memory_order_release);
  if (monitor_ != nullptr) monitor_->Stop();
  if (membership_ != nullptr) membership_->Stop();
  watches_->Stop();
  call_gate_.Close();
  if (options_.transport != nullptr) options_.transport->Shutdown();
  AbandonRetryingCalls();
  for (size_t i = num_started_services_; i > 0; --i) {
    services_[i - 1]->Interrupt();
  }
  if (own_control_pool_ != nullptr) own_control_pool_->Shutdown();
  if (own_pool_ != nullptr) own_pool_->Shutdown();
  shared_->gate.Close();
  AbandonRetryingCalls();
  for (size_t i = num_started_services_; i > 0; --i) services_[i - 1]->Stop();
  for (const auto& peer : peers_.All()) peer->Disconnect();
  phase_.store(Phase::kStopped, std::memory_order_release);
}

absl::Status Agent::Impl::Shutdown(bool graceful) {
  if (InsideScope::IsInside(this)) {
    return absl::FailedPreconditionError(
        "an agent cannot be shut down within one of its calls");
  }
  const bool joined = joined_.load(std::memory_order_acquire);
  absl::Status status;
  if (graceful && joined && !shutdown_begun()) status = Leave().Wait();
  {
    async::BlockingRegion region;
    async::MutexLock lock(&mutex_);
    if (std::exchange(shutdown_begun_, true)) {
      while (!shutdown_result_.has_value()) changed_.Wait(&mutex_);
      // A leave that was cut short did not go well, even if the rest did.
      return status.ok() ? *shutdown_result_ : status;
    }
  }
  if (joined) options_.transport->SetServing(false);
  AbandonLeave();
  if (joined && (!graceful || !status.ok())) {
    // What it says below is not news to itself.
    membership_->Stop();
    // So that the name is free again. What went wrong before is what counts.
    (void)WithdrawAs(LostEvent(self_.incarnation, self_.incarnation,
                               "stopped without leaving the job"));
  }
  Stop();
  async::MutexLock lock(&mutex_);
  shutdown_result_ = status;
  changed_.NotifyAll();
  return status;
}

}  // namespace hawser::rpc
