#ifndef HAWSER_LAUNCH_RUN_NODE_LEASE_H_
#define HAWSER_LAUNCH_RUN_NODE_LEASE_H_

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "async/mutex.h"
#include "store/store.h"

namespace hawser::launch {

// The lease by which a launcher shows the others that it runs. A thread of the
// object renews it every third of its lifetime; the store measures the
// lifetime. Thread-safe.
class NodeLease {
 public:
  // Sets the lease `key`. Errors are those of the store, which must outlive the
  // lease.
  static absl::StatusOr<std::unique_ptr<NodeLease>> Start(
      store::Store* store, std::string key, absl::Duration lifetime);
  // Stops the renewal; the store removes the key later.
  ~NodeLease();
  NodeLease(const NodeLease&) = delete;
  NodeLease& operator=(const NodeLease&) = delete;

  // kUnavailable, with the store's error, once the lease was not renewed for
  // its lifetime.
  absl::Status status() const;

 private:
  NodeLease(store::Store* store, std::string key, absl::Duration lifetime);

  absl::Status Renew();
  void Run();

  store::Store* const store_;
  const std::string key_;
  const absl::Duration lifetime_;
  absl::Notification stopped_;

  mutable async::Mutex mutex_;
  std::chrono::steady_clock::time_point renewed_at_ ABSL_GUARDED_BY(mutex_);
  absl::Status last_error_ ABSL_GUARDED_BY(mutex_);

  std::thread thread_;
};

}  // namespace hawser::launch

#endif  // HAWSER_LAUNCH_RUN_NODE_LEASE_H_
