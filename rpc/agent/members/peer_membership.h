// This worker's membership in its job, and its view of the other members.

#ifndef HAWSER_RPC_AGENT_MEMBERS_PEER_MEMBERSHIP_H_
#define HAWSER_RPC_AGENT_MEMBERS_PEER_MEMBERSHIP_H_

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/future.h"
#include "async/mutex.h"
#include "rpc/agent/inbound/sender_directory.h"
#include "rpc/agent/leave/leaving_member.h"
#include "rpc/agent/members/control_calls.h"
#include "rpc/agent/members/peer_directory.h"
#include "rpc/agent/outbound/peer_finder.h"
#include "rpc/agent/state/agent_state.h"
#include "rpc/membership/liveness_options.h"
#include "rpc/membership/member_event.h"
#include "rpc/membership/member_watches.h"
#include "rpc/membership/membership.h"
#include "rpc/membership/membership_log.h"
#include "rpc/membership/worker_directory.h"
#include "rpc/peers/liveness_monitor.h"
#include "rpc/peers/peer.h"
#include "rpc/transport/transport.h"

namespace hawser::store {
class Store;
}  // namespace hawser::store

namespace hawser::rpc {

// Joins the job, follows its membership log, monitors the liveness of peers
// with heartbeats, and decides which of them are lost.
//
// A peer is lost if the log says so, if this worker's heartbeats to it fail, or
// if this worker itself was declared lost, which loses all peers at once. It is
// reported once per incarnation to Options::on_peer_lost.
//
// Thread-safe. Stop must be called before it is destroyed.
class PeerMembership final : public PeerFinder,
                             public SenderDirectory,
                             public LeavingMember {
 public:
  struct Options {
    std::shared_ptr<AgentState> state;
    // Both must outlive the membership.
    store::Store* store = nullptr;
    Transport* transport = nullptr;
    // Must outlive the membership.
    ControlCalls* control = nullptr;
    LivenessOptions liveness;
    std::optional<int> world_size;
    absl::Duration start_timeout;
    // Runs once per lost incarnation that this worker met, in any thread. The
    // status has an ErrorDetail.
    std::function<void(const WorkerInfo& worker, const absl::Status& status)>
        on_peer_lost;
    // Runs when this worker was declared lost, after AgentState::SetFenced.
    std::function<void()> on_fenced;
  };

  explicit PeerMembership(Options options);
  ~PeerMembership() override;
  PeerMembership(const PeerMembership&) = delete;
  PeerMembership& operator=(const PeerMembership&) = delete;

  // --- Joining.

  // Agrees with the other workers on the kind of group, before the worker
  // serves. Blocks. kFailedPrecondition if theirs differs.
  absl::Status JoinGroup();
  // Claims name and rank, records that this worker joined, starts the
  // membership rounds and, with a world size, waits until all workers know each
  // other. Blocks, for up to the start timeout, also while the store does not
  // reply. Errors of Agent::Start.
  absl::Status Join();
  // Whether this worker is or was a member.
  bool joined() const { return joined_.load(std::memory_order_acquire); }

  // --- Peers.

  absl::StatusOr<std::shared_ptr<Peer>> FindPeer(
      const Destination& to, async::MonotonicTime deadline) override;
  void Watch(const std::shared_ptr<Peer>& peer) override;
  std::vector<std::shared_ptr<Peer>> peers() const { return peers_.All(); }
  std::vector<WorkerInfo> workers() const;
  size_t num_lost() const { return peers_.num_lost(); }

  std::shared_ptr<Peer> FindSender(Incarnation incarnation) const override;
  bool IsLost(const WorkerInfo& worker) const override;
  bool HasDeparted(Incarnation incarnation) const override;
  bool MaybeFenced() const override;
  void OnMessage(const std::shared_ptr<Peer>& sender) override;
  void Confirm(const WorkerInfo& sender,
               absl::AnyInvocable<void(absl::Status) &&> done) override;

  // Processes the leave notice of `worker`. Completes when this worker has no
  // more calls to it in flight.
  async::Future<void> OnLeaveNotice(const WorkerInfo& worker);

  // --- Events.

  MemberWatch WatchMembers(MemberCallback callback);
  void UnwatchMembers(MemberWatch watch);

  // To be called after JoinGroup.
  uint64_t num_events() const { return membership_->num_events(); }
  bool store_reachable() const { return membership_->store_reachable(); }
  absl::Duration lease_age(async::MonotonicTime now) const {
    return membership_->lease_age(now);
  }

  // --- Leaving.

  std::vector<WorkerInfo> Members() const override { return workers(); }
  async::Future<void> WhenPeerLost() override;
  async::Future<void> WhenAlone() override;
  bool StoreReachable() const override { return store_reachable(); }
  store::Barrier BarrierOf(std::string_view name,
                           Incarnation coordinator) const override;
  absl::Status Withdraw() override;
  void StopMonitoring() override { monitor_->Stop(); }
  void StopReporting() override { reporting_.store(false); }
  void StopMembership() override { membership_->Stop(); }
  async::Future<void> NotifyPeers(async::MonotonicTime deadline) override;
  // Releases the name and records that this worker ended without leaving, so
  // that its peers need not wait for its lease. Blocks.
  absl::Status WithdrawAsLost();

  // Stops all of it. After it returns, no callback is running or will run.
  // Idempotent.
  void Stop();
  // Drops the connections to all peers.
  void Disconnect();

 private:
  absl::Status Register();
  // Requests a heartbeat reply from the address of `holder`. Blocks.
  absl::Status Probe(const WorkerInfo& holder);
  // Runs `step` until the store replies to it or `deadline` has passed.
  absl::Status UntilStoreReplies(async::MonotonicTime deadline,
                                 absl::FunctionRef<absl::Status()> step);
  void OnEvent(const MemberEvent& event);
  // Sends a heartbeat for the monitor; `done` runs once it is known whether
  // this worker itself was declared lost.
  void CheckAlive(const std::shared_ptr<Peer>& peer,
                  async::MonotonicTime deadline, ControlCalls::Done done);
  void OnSilent(const std::shared_ptr<Peer>& peer, const absl::Status& status);
  void OnLost(const std::shared_ptr<Peer>& peer, const absl::Status& status);
  void OnLeft(const std::shared_ptr<Peer>& peer);
  void OnFenced(const std::string& reason);
  void Report(const std::shared_ptr<Peer>& peer, const absl::Status& status);
  // Completes the futures of the leave after a departure.
  void CheckDeparted();
  // kUnavailable, with an ErrorDetail, if a peer was lost without leaving.
  absl::Status CheckPeers() const;
  bool IsAlone() const;
  absl::Status WithdrawAs(const v1::MembershipEvent& departure);

  const Options options_;
  AgentState& state_;
  WorkerDirectory records_;
  MembershipLog log_;
  PeerDirectory peers_;
  MemberWatches watches_;
  // Created before the worker serves; their callbacks run once it has joined.
  std::unique_ptr<Membership> membership_;
  std::unique_ptr<LivenessMonitor> monitor_;
  std::atomic<bool> joined_{false};
  // Whether departures are reported to Options::on_peer_lost.
  std::atomic<bool> reporting_{true};

  async::Mutex mutex_;
  // Of WhenPeerLost and WhenAlone.
  std::vector<async::Promise<void>> await_loss_ ABSL_GUARDED_BY(mutex_);
  std::vector<async::Promise<void>> await_alone_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_AGENT_MEMBERS_PEER_MEMBERSHIP_H_
