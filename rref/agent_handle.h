#ifndef HAWSER_RREF_AGENT_HANDLE_H_
#define HAWSER_RREF_AGENT_HANDLE_H_

#include <cstdint>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "async/blocking_region.h"
#include "async/mutex.h"
#include "rpc/agent/agent.h"

namespace hawser::rref {

// An agent for objects that may outlive it, such as references: usable until
// it is revoked. Thread-safe.
class AgentHandle {
 public:
  // The agent, for a scope. Not to be held while waiting for anything.
  class Use {
   public:
    Use(Use&& other) noexcept
        : handle_(std::exchange(other.handle_, nullptr)) {}
    Use& operator=(Use&&) = delete;
    ~Use() {
      if (handle_ != nullptr) handle_->Release();
    }

    // False once the agent is gone.
    explicit operator bool() const { return handle_ != nullptr; }
    rpc::Agent* operator->() const { return handle_->agent_; }
    rpc::Agent& operator*() const { return *handle_->agent_; }
    rpc::Agent* get() const {
      return handle_ == nullptr ? nullptr : handle_->agent_;
    }

   private:
    friend class AgentHandle;
    explicit Use(AgentHandle* handle) : handle_(handle) {}

    AgentHandle* handle_;
  };

  explicit AgentHandle(rpc::Agent& agent) : agent_(&agent) {}
  AgentHandle(const AgentHandle&) = delete;
  AgentHandle& operator=(const AgentHandle&) = delete;

  Use Acquire() {
    async::MutexLock lock(&mutex_);
    if (revoked_) return Use(nullptr);
    ++uses_;
    return Use(this);
  }

  // Waits until nobody uses the agent; nobody will any more.
  void Revoke() {
    async::BlockingRegion blocking;
    async::MutexLock lock(&mutex_);
    revoked_ = true;
    while (uses_ > 0) released_.Wait(&mutex_);
  }

 private:
  void Release() {
    async::MutexLock lock(&mutex_);
    if (--uses_ == 0) released_.NotifyAll();
  }

  rpc::Agent* const agent_;

  async::Mutex mutex_;
  async::CondVar released_;
  int64_t uses_ ABSL_GUARDED_BY(mutex_) = 0;
  bool revoked_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace hawser::rref

#endif  // HAWSER_RREF_AGENT_HANDLE_H_
