#ifndef HAWSER_STORE_ETCD_CLIENT_H_
#define HAWSER_STORE_ETCD_CLIENT_H_

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/clock.h"
#include "async/mutex.h"
#include "proto/etcd.grpc.pb.h"
#include "proto/etcd.pb.h"

namespace hawser::store::internal {

// The calls to etcd used by the etcd store. Thread-safe. Calls block and are
// retried until etcd replies; kDeadlineExceeded if `deadline` passes first.
// Other errors are etcd's.
class EtcdClient {
 public:
  // Values of several keys at one revision.
  struct Snapshot {
    int64_t revision = 0;
    // In the order of the request.
    std::vector<std::optional<std::string>> values;
  };

  explicit EtcdClient(const std::string& address);
  // Revokes the lease if etcd is reachable.
  ~EtcdClient();

  // Reads the values of `keys`, all at one revision; with `keys_only` the
  // values are empty.
  absl::StatusOr<Snapshot> ReadSnapshot(std::span<const std::string> keys,
                                        bool keys_only,
                                        async::MonotonicTime deadline);

  // Number of keys that begin with `prefix`, not empty.
  absl::StatusOr<int64_t> Count(const std::string& prefix,
                                async::MonotonicTime deadline);

  absl::StatusOr<etcdserverpb::TxnResponse> Transact(
      const etcdserverpb::TxnRequest& request, async::MonotonicTime deadline);

  // The changes that a watch awaits.
  enum class Await {
    // Each of the keys is set.
    kAllSet,
    // One of the keys is set or removed.
    kAnyChange,
  };
  // Returns when this did happen, or may have, at `revision` or later: read
  // again, and watch again if necessary. kUnavailable if the watch was lost.
  // `context` is a new one; cancelling it also ends the watch.
  absl::Status Watch(std::span<const std::string> keys, Await await,
                     int64_t revision, async::MonotonicTime deadline,
                     grpc::ClientContext* context);

  // Returns a lease that lasts at least 10 minutes from now.
  absl::StatusOr<int64_t> Lease(async::MonotonicTime deadline);

  // Returns a new lease of `seconds`, or of etcd's minimum if that is longer.
  absl::StatusOr<int64_t> GrantLease(int64_t seconds,
                                     async::MonotonicTime deadline);
  // Begins the lifetime of a lease anew; returns false if it has ended.
  absl::StatusOr<bool> RenewLease(int64_t id, async::MonotonicTime deadline);

 private:
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<etcdserverpb::KV::Stub> kv_;
  const std::unique_ptr<etcdserverpb::Watch::Stub> watch_;
  const std::unique_ptr<etcdserverpb::Lease::Stub> lease_;

  async::Mutex mutex_;
  // 0 before the first lease.
  int64_t lease_id_ ABSL_GUARDED_BY(mutex_) = 0;
  async::MonotonicTime lease_granted_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::store::internal

#endif  // HAWSER_STORE_ETCD_CLIENT_H_
