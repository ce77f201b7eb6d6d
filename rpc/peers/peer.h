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

// One incarnation of one worker: how to reach it, and whether it lives.
// Thread-safe.
class Peer {
 public:
  // `header` is the serialised RequestHeader of requests to it, without the
  // fields that differ between requests. `transport` outlives this.
  Peer(WorkerInfo info, std::string header, Transport* transport)
      : info_(std::move(info)),
        header_(std::move(header)),
        transport_(transport) {}
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  const WorkerInfo& info() const { return info_; }
  const std::string& header() const { return header_; }
  // May outlive this.
  const std::shared_ptr<PeerCounters>& counters() const { return counters_; }

  // Connected when first used. The status it was found lost with, after
  // MarkLost.
  absl::StatusOr<std::shared_ptr<Connection>> connection();

  // A request came from it.
  void SetHeard(async::MonotonicTime now) {
    last_heard_.store(now, std::memory_order_relaxed);
  }
  // It answered a request.
  void SetAnswered(async::MonotonicTime now) {
    SetHeard(now);
    last_answered_.store(now, std::memory_order_relaxed);
  }
  async::MonotonicTime last_heard() const {
    return last_heard_.load(std::memory_order_relaxed);
  }
  // As last_heard() while it was never called. After that, that its own
  // requests come through says nothing of the way there.
  async::MonotonicTime last_answered() const {
    return connected_.load(std::memory_order_acquire)
               ? last_answered_.load(std::memory_order_relaxed)
               : last_heard();
  }

  // Around each call that must not be sent twice: BeginCall before
  // connection(), so that after MarkLeft and WhenIdle none is under way.
  void BeginCall() { calls_.Begin(); }
  void EndCall() { calls_.End(); }
  // Ready when no call is under way.
  async::Future<void> WhenIdle() { return calls_.WhenIdle(); }

  bool watched() const { return watched_.load(std::memory_order_relaxed); }
  // True the first time: from then on its liveness matters.
  bool SetWatched() {
    return !watched_.load(std::memory_order_relaxed) &&
           !watched_.exchange(true, std::memory_order_relaxed);
  }

  // Ends all calls to it, now and later, with `status`, not OK. True the first
  // time.
  bool MarkLost(const absl::Status& status);
  // For heartbeats: also that of a peer that has left and still finishes what
  // it serves.
  absl::StatusOr<std::shared_ptr<Connection>> heartbeat_connection();

  bool lost() const { return lost_.load(std::memory_order_acquire); }

  // Ends later calls to it with `status`, not OK; those under way go on, for
  // it finishes what it serves. Counts as lost. True unless it did before.
  bool MarkLeft(const absl::Status& status);
  bool left() const { return left_.load(std::memory_order_acquire); }

  // Drops the connection, whose calls end with kCancelled.
  void Disconnect();

 private:
  const WorkerInfo info_;
  const std::string header_;
  Transport* const transport_;
  const std::shared_ptr<PeerCounters> counters_ =
      std::make_shared<PeerCounters>();
  std::atomic<async::MonotonicTime> last_heard_{async::MonotonicTime::min()};
  std::atomic<async::MonotonicTime> last_answered_{async::MonotonicTime::min()};
  // Whether there is a connection, or was one.
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
