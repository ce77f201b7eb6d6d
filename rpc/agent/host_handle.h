#ifndef HAWSER_RPC_AGENT_HOST_HANDLE_H_
#define HAWSER_RPC_AGENT_HOST_HANDLE_H_

#include <cstdint>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "async/blocking_region.h"
#include "async/mutex.h"
#include "rpc/agent/service_host.h"

namespace hawser::rpc {

// A revocable pointer to the host of a service, for objects that may outlive
// the host, such as references. Thread-safe.
class HostHandle {
 public:
  // Access to the host for a scope. Must not be held while waiting.
  class Use {
   public:
    Use(Use&& other) noexcept
        : handle_(std::exchange(other.handle_, nullptr)) {}
    Use& operator=(Use&&) = delete;
    ~Use() {
      if (handle_ != nullptr) handle_->Release();
    }

    // False once the host was revoked.
    explicit operator bool() const { return handle_ != nullptr; }
    ServiceHost* operator->() const { return handle_->host_; }
    ServiceHost& operator*() const { return *handle_->host_; }
    ServiceHost* get() const {
      return handle_ == nullptr ? nullptr : handle_->host_;
    }

   private:
    friend class HostHandle;
    explicit Use(HostHandle* handle) : handle_(handle) {}

    HostHandle* handle_;
  };

  explicit HostHandle(ServiceHost& host) : host_(&host) {}
  HostHandle(const HostHandle&) = delete;
  HostHandle& operator=(const HostHandle&) = delete;

  Use Acquire() {
    async::MutexLock lock(&mutex_);
    if (revoked_) return Use(nullptr);
    ++uses_;
    return Use(this);
  }

  // Refuses new uses and waits until the current ones have ended.
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

  ServiceHost* const host_;

  async::Mutex mutex_;
  async::CondVar released_;
  int64_t uses_ ABSL_GUARDED_BY(mutex_) = 0;
  bool revoked_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_AGENT_HOST_HANDLE_H_
