// State that an agent keeps for one worker with which it communicates.

#ifndef HAWSER_RPC_PEERS_PEER_H_
#define HAWSER_RPC_PEERS_PEER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/clock.h"
#include "async/future.h"
#include "async/mutex.h"
#include "rpc/identity/worker_info.h"
#include "rpc/peers/in_flight_counter.h"
#include "rpc/peers/peer_counters.h"
#include "rpc/transport/transport.h"

namespace hawser::rpc {

// One incarnation of one worker: its connection and its liveness. Thread-safe.
class Peer {
 public:
  // `header` is the serialised RequestHeader of requests to the peer, without
  // the fields that differ between requests. `transport` must outlive this
  // object.
  Peer(WorkerInfo info, std::string header, Transport* transport)
      : info_(std::move(info)),
        header_(std::move(header)),
        transport_(transport) {}
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  const WorkerInfo& info() const { return info_; }
  const std::string& header() const { return header_; }
  // May outlive this object.
  const std::shared_ptr<PeerCounters>& counters() const { return counters_; }

  // Returns the connection, established on first use. After MarkLost returns
  // the status passed to it.
  absl::StatusOr<std::shared_ptr<Connection>> connection();

  // Records a request from the peer.
  void SetHeard(async::MonotonicTime now) {
    last_heard_.store(now, std::memory_order_relaxed);
  }
  // Records a reply from the peer.
  void SetAnswered(async::MonotonicTime now) {
    SetHeard(now);
    last_answered_.store(now, std::memory_order_relaxed);
  }
  async::MonotonicTime last_heard() const {
    return last_heard_.load(std::memory_order_relaxed);
  }
  // Time of the last reply; last_heard() if the peer was never called. Requests
  // from the peer do not count, since they do not show that messages to it
  // arrive.
  async::MonotonicTime last_answered() const {
    return connected_.load(std::memory_order_acquire)
               ? last_answered_.load(std::memory_order_relaxed)
               : last_heard();
  }

  // Called around each call that must not be sent twice. BeginCall precedes
  // connection(), so that after MarkLeft and WhenIdle no such call is in
  // flight.
  void BeginCall() { calls_.Begin(); }
  void EndCall() { calls_.End(); }
  // Becomes ready when no call is in flight.
  async::Future<void> WhenIdle() { return calls_.WhenIdle(); }

  bool watched() const { return watched_.load(std::memory_order_relaxed); }
  // Marks the peer's liveness as monitored. Returns true the first time.
  bool SetWatched() {
    return !watched_.load(std::memory_order_relaxed) &&
           !watched_.exchange(true, std::memory_order_relaxed);
  }

  // Ends all current and later calls to the peer with `status`, which must not
  // be OK. Returns true the first time.
  bool MarkLost(const absl::Status& status);
  // Connection for heartbeats; also available for a peer that has left but
  // still finishes the calls that it serves.
  absl::StatusOr<std::shared_ptr<Connection>> heartbeat_connection();

  bool lost() const { return lost_.load(std::memory_order_acquire); }

  // Fails later calls to the peer with `status`, which must not be OK. Calls in
  // flight continue, since the peer finishes the calls that it serves. Counts
  // as lost. Returns true unless it was lost before.
  bool MarkLeft(const absl::Status& status);
  bool left() const { return left_.load(std::memory_order_acquire); }

  // Drops the connection; its calls end with kCancelled.
  void Disconnect();

 private:
  const WorkerInfo info_;
  const std::string header_;
  Transport* const transport_;
  const std::shared_ptr<PeerCounters> counters_ =
      std::make_shared<PeerCounters>();
  std::atomic<async::MonotonicTime> last_heard_{async::MonotonicTime::min()};
  std::atomic<async::MonotonicTime> last_answered_{async::MonotonicTime::min()};
  // Whether there is or was a connection.
  std::atomic<bool> connected_{false};
  std::atomic<bool> watched_{false};
  InFlightCounter calls_;
  std::atomic<bool> lost_{false};
  std::atomic<bool> left_{false};

  async::Mutex mutex_;
  std::shared_ptr<Connection> connection_ ABSL_GUARDED_BY(mutex_);
  absl::Status lost_status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_PEERS_PEER_H_
