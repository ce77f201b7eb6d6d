#include "rpc/peers/liveness_monitor.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/mutex.h"
#include "rpc/peers/peer_counters.h"
#include "rpc/transport/gate.h"

namespace hawser::rpc {
namespace {

// Timeout of a heartbeat, in intervals.
constexpr int kIntervalsPerPing = 2;
// Multiple of `silent_limit` for which a peer may leave calls unanswered while
// its own requests arrive. It is longer because a flapping network can block
// one connection for longer than all of them.
constexpr int kUnansweredLimits = 3;
// Number of intervals, before `silent_limit` ends, from which on a silent
// peer's machine is probed once in each. In a network that fails again and
// again, one of these probes arrives.
constexpr int kProbes = 3;
// A pair that has not talked for some time exchanges a heartbeat after half as
// much again, up to the maximum.
constexpr int kIdleDivisor = 2;
constexpr absl::Duration kMaxIdleInterval = absl::Seconds(30);

// Requests between this worker and the peer, other than heartbeats.
uint64_t CountRequests(const PeerTotals& totals) {
  return totals.sent + totals.ended + totals.served;
}

}  // namespace

class LivenessMonitor::State : public std::enable_shared_from_this<State> {
 public:
  State(LivenessOptions options, async::Clock* clock, Ping ping, Probe probe,
        OnLost on_lost)
      : options_(options),
        clock_(*clock),
        ping_(std::move(ping)),
        probe_(std::move(probe)),
        on_lost_(std::move(on_lost)) {}

  void Watch(std::shared_ptr<Peer> peer) {
    const async::MonotonicTime now = clock_.Now();
    if (peer->last_heard() < now) peer->SetAnswered(now);
    async::MutexLock lock(&mutex_);
    if (stopped_) return;
    Watched watched{.peer = std::move(peer), .last_used = now};
    watched.num_requests = CountRequests(watched.peer->counters()->totals());
    watched_.push_back(std::move(watched));
    if (!std::exchange(ticking_, true)) ScheduleLocked(now);
  }

  void Stop() {
    {
      async::MutexLock lock(&mutex_);
      if (!std::exchange(stopped_, true) && ticking_) clock_.Cancel(timer_);
      watched_.clear();
    }
    gate_.Close();
  }

 private:
  struct Watched {
    std::shared_ptr<Peer> peer;
    bool ping_in_flight = false;
    // Time of the first heartbeat that was sent since the peer's last reply;
    // kNever if there was none.
    async::MonotonicTime asked = async::kNever;
    bool probe_in_flight = false;
    // Whether the last probe was refused.
    bool refused = false;
    // Time of the first probe since the last accepted one; kNever if there is
    // none.
    async::MonotonicTime not_accepted_since = async::kNever;
    // Error of the last heartbeat since then that found no connection.
    std::string no_connection = {};
    // Number of requests at the last tick, and the last tick at which it had
    // changed or a call was in flight.
    uint64_t num_requests = 0;
    async::MonotonicTime last_used = {};
  };

  // How long the peer has not reacted since `last_reaction`. The time before it
  // was asked does not count, but for the interval after which an active peer
  // is asked.
  absl::Duration Silence(const Watched& watched,
                         async::MonotonicTime last_reaction,
                         async::MonotonicTime now) const {
    if (watched.asked == async::kNever) return absl::ZeroDuration();
    return async::TimeBetween(
        std::max(last_reaction,
                 async::AddDelay(watched.asked, -options_.heartbeat_interval)),
        now);
  }

  void BeginProbe(Watched& watched, async::MonotonicTime now) const {
    watched.probe_in_flight = true;
    if (watched.not_accepted_since == async::kNever) {
      watched.not_accepted_since = now;
    }
  }

  // Whether the peer's machine refused the last probe, or accepted none of the
  // last kProbes.
  bool Unreachable(const Watched& watched, async::MonotonicTime now) const {
    return watched.refused ||
           (watched.not_accepted_since != async::kNever &&
            async::TimeBetween(watched.not_accepted_since, now) >=
                kProbes * options_.heartbeat_interval);
  }

  // Interval of heartbeats to a silent peer. Calls in flight, and recent
  // requests, need an early detection of a loss; an idle pair learns of a dead
  // peer through the membership.
  absl::Duration IntervalOf(Watched& watched, async::MonotonicTime now) const {
    const PeerTotals totals = watched.peer->counters()->totals();
    const uint64_t num_requests = CountRequests(totals);
    if (num_requests != watched.num_requests || totals.sent != totals.ended) {
      watched.num_requests = num_requests;
      watched.last_used = now;
    }
    const absl::Duration idle = async::TimeBetween(watched.last_used, now);
    return std::max(options_.heartbeat_interval,
                    std::min(idle / kIdleDivisor, kMaxIdleInterval));
  }

  void ScheduleLocked(async::MonotonicTime now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    last_tick_ = now;
    timer_ = clock_.CallAfter(options_.heartbeat_interval,
                              [state = shared_from_this()] { state->Tick(); });
  }

  // 1. Restarts the grace period of all peers if this process stalled.
  // 2. Reports peers that were silent for too long, and sends heartbeats to
  //    silent peers.
  void Tick() {
    Gate::Entry entry(&gate_);
    if (!entry) return;
    const async::MonotonicTime now = clock_.Now();
    std::vector<std::pair<std::shared_ptr<Peer>, std::string>> lost;
    std::vector<std::shared_ptr<Peer>> probed;
    // With the deadlines of their heartbeats.
    std::vector<std::pair<std::shared_ptr<Peer>, async::MonotonicTime>> silent;
    {
      async::MutexLock lock(&mutex_);
      if (stopped_) return;
      const bool stood_still =
          async::TimeBetween(last_tick_, now) > 2 * options_.heartbeat_interval;
      for (Watched& watched : watched_) {
        const Peer& peer = *watched.peer;
        if (stood_still) watched.peer->SetAnswered(now);
        if (watched.asked != async::kNever &&
            peer.last_answered() >= watched.asked) {
          watched.asked = async::kNever;
          watched.no_connection.clear();
        }
        const absl::Duration silence = Silence(watched, peer.last_heard(), now);
        const absl::Duration unanswered =
            Silence(watched, peer.last_answered(), now);
        const absl::Duration interval = IntervalOf(watched, now);
        if (silence == absl::ZeroDuration() ||
            silence <
                options_.silent_limit - kProbes * options_.heartbeat_interval) {
          watched.refused = false;
          watched.not_accepted_since = async::kNever;
        } else if (!watched.probe_in_flight) {
          BeginProbe(watched, now);
          probed.push_back(watched.peer);
        }
        if (silence >= kUnansweredLimits * options_.silent_limit ||
            (silence >= options_.silent_limit && Unreachable(watched, now))) {
          lost.emplace_back(watched.peer, SilentFor(silence));
        } else if (unanswered >= kUnansweredLimits * options_.silent_limit) {
          lost.emplace_back(
              watched.peer,
              absl::StrCat("sends requests, but has not replied to any for ",
                           absl::FormatDuration(unanswered)));
        } else if (!watched.ping_in_flight &&
                   (watched.asked != async::kNever ||
                    async::TimeBetween(
                        std::min(peer.last_heard(), peer.last_answered()),
                        now) >= interval)) {
          watched.ping_in_flight = true;
          if (watched.asked == async::kNever) watched.asked = now;
          // A lost message must leave time for further attempts.
          const absl::Duration usual =
              kIntervalsPerPing * options_.heartbeat_interval;
          const absl::Duration left =
              silence < options_.silent_limit
                  ? std::min(options_.silent_limit - silence, usual)
                  : usual;
          silent.emplace_back(watched.peer, async::AddDelay(now, left));
        }
      }
      ScheduleLocked(now);
    }
    for (const auto& [peer, reason] : lost) Report(peer, reason);
    for (const auto& [peer, deadline] : silent) SendPing(peer, deadline);
    for (const auto& peer : probed) SendProbe(peer);
  }

  static std::string SilentFor(absl::Duration silence) {
    return absl::StrCat(
        "sent no heartbeat reply for ",
        absl::FormatDuration(absl::Trunc(silence, absl::Milliseconds(1))));
  }

  void SendProbe(const std::shared_ptr<Peer>& peer) {
    // Ends before the next one is due.
    probe_(peer, options_.heartbeat_interval * 4 / 5,
           [state = shared_from_this(), peer](const absl::Status& status) {
             state->OnProbed(peer, status);
           });
  }

  void OnProbed(const std::shared_ptr<Peer>& peer, const absl::Status& status) {
    Gate::Entry entry(&gate_);
    if (!entry) return;
    const async::MonotonicTime now = clock_.Now();
    std::string reason;
    {
      async::MutexLock lock(&mutex_);
      for (Watched& watched : watched_) {
        if (watched.peer != peer) continue;
        watched.probe_in_flight = false;
        watched.refused = absl::IsUnavailable(status);
        const absl::Duration silence =
            Silence(watched, peer->last_heard(), now);
        if (status.ok()) {
          watched.not_accepted_since = async::kNever;
          watched.no_connection.clear();
        } else if (!Unreachable(watched, now)) {
          continue;
        } else if (!watched.no_connection.empty() &&
                   silence >= options_.unreachable_limit) {
          reason = absl::StrCat("is out of reach: ", watched.no_connection);
        } else if (silence >= options_.silent_limit) {
          reason = SilentFor(silence);
        }
      }
    }
    if (!reason.empty()) Report(peer, reason);
  }

  void SendPing(const std::shared_ptr<Peer>& peer,
                async::MonotonicTime deadline) {
    ping_(peer, deadline,
          [state = shared_from_this(), peer](const absl::Status& status) {
            state->OnPong(peer, status);
          });
  }

  void OnPong(const std::shared_ptr<Peer>& peer, const absl::Status& status) {
    Gate::Entry entry(&gate_);
    if (!entry) return;
    const async::MonotonicTime now = clock_.Now();
    bool probe = false;
    {
      async::MutexLock lock(&mutex_);
      for (Watched& watched : watched_) {
        if (watched.peer != peer) continue;
        watched.ping_in_flight = false;
        if (absl::IsUnavailable(status) &&
            Silence(watched, peer->last_heard(), now) >=
                options_.unreachable_limit) {
          watched.no_connection = std::string(status.message());
          probe = !watched.probe_in_flight;
          if (probe) BeginProbe(watched, now);
        }
      }
    }
    if (status.ok()) {
      peer->SetAnswered(now);
      return;
    }
    if (absl::IsFailedPrecondition(status)) {
      Report(peer, absl::StrCat("is gone: ", status.message()));
    } else if (probe) {
      SendProbe(peer);
    }
  }

  void Report(const std::shared_ptr<Peer>& peer, absl::string_view reason) {
    {
      async::MutexLock lock(&mutex_);
      auto it = std::find_if(
          watched_.begin(), watched_.end(),
          [&](const Watched& watched) { return watched.peer == peer; });
      if (it == watched_.end()) return;
      watched_.erase(it);
    }
    on_lost_(peer, absl::UnavailableError(
                       absl::StrCat(ToString(peer->info()), " ", reason)));
  }

  const LivenessOptions options_;
  async::Clock& clock_;
  const Ping ping_;
  const Probe probe_;
  const OnLost on_lost_;
  // Entered by callbacks that run later.
  Gate gate_;

  async::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  bool ticking_ ABSL_GUARDED_BY(mutex_) = false;
  async::TimerId timer_ ABSL_GUARDED_BY(mutex_){};
  async::MonotonicTime last_tick_ ABSL_GUARDED_BY(mutex_);
  std::vector<Watched> watched_ ABSL_GUARDED_BY(mutex_);
};

LivenessMonitor::LivenessMonitor(LivenessOptions options, async::Clock* clock,
                                 Ping ping, Probe probe, OnLost on_lost)
    : state_(std::make_shared<State>(options, clock, std::move(ping),
                                     std::move(probe), std::move(on_lost))) {}

LivenessMonitor::~LivenessMonitor() { Stop(); }

void LivenessMonitor::Watch(std::shared_ptr<Peer> peer) {
  state_->Watch(std::move(peer));
}

void LivenessMonitor::Stop() { state_->Stop(); }

}  // namespace hawser::rpc
