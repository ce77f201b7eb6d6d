#include "rpc/peers/liveness_monitor.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/mutex.h"
#include "rpc/transport/gate.h"

namespace hawser::rpc {
namespace {

// Timeout of a heartbeat, in intervals.
constexpr int kIntervalsPerPing = 2;
// Multiple of `silent_limit` for which a peer may leave calls unanswered while
// its own requests arrive. It is longer because a flapping network can block
// one connection for longer than all of them.
constexpr int kUnansweredLimits = 3;

}  // namespace

class LivenessMonitor::State : public std::enable_shared_from_this<State> {
 public:
  State(LivenessOptions options, async::Clock* clock, Ping ping, OnLost on_lost)
      : options_(options),
        clock_(*clock),
        ping_(std::move(ping)),
        on_lost_(std::move(on_lost)) {}

  void Watch(std::shared_ptr<Peer> peer) {
    const async::MonotonicTime now = clock_.Now();
    if (peer->last_heard() < now) peer->SetAnswered(now);
    async::MutexLock lock(&mutex_);
    if (stopped_) return;
    watched_.push_back({std::move(peer)});
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
  };

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
    std::vector<std::shared_ptr<Peer>> silent;
    {
      async::MutexLock lock(&mutex_);
      if (stopped_) return;
      const bool stood_still =
          async::TimeBetween(last_tick_, now) > 2 * options_.heartbeat_interval;
      for (Watched& watched : watched_) {
        if (stood_still) watched.peer->SetAnswered(now);
        const absl::Duration silence =
            async::TimeBetween(watched.peer->last_heard(), now);
        const absl::Duration unanswered =
            async::TimeBetween(watched.peer->last_answered(), now);
        if (silence >= options_.silent_limit) {
          lost.emplace_back(
              watched.peer,
              absl::StrCat("sent no heartbeat reply for ",
                           absl::FormatDuration(options_.silent_limit)));
        } else if (unanswered >= kUnansweredLimits * options_.silent_limit) {
          lost.emplace_back(
              watched.peer,
              absl::StrCat("sends requests, but has not replied to any for ",
                           absl::FormatDuration(unanswered)));
        } else if (std::max(silence, unanswered) >=
                       options_.heartbeat_interval &&
                   !watched.ping_in_flight) {
          watched.ping_in_flight = true;
          silent.push_back(watched.peer);
        }
      }
      ScheduleLocked(now);
    }
    for (const auto& [peer, reason] : lost) Report(peer, reason);
    for (const auto& peer : silent) SendPing(peer);
  }

  void SendPing(const std::shared_ptr<Peer>& peer) {
    // A lost message must leave time for further attempts.
    const async::MonotonicTime deadline = std::min(
        async::AddDelay(peer->last_heard(), options_.silent_limit),
        async::AddDelay(clock_.Now(),
                        kIntervalsPerPing * options_.heartbeat_interval));
    ping_(peer, deadline,
          [state = shared_from_this(), peer](const absl::Status& status) {
            state->OnPong(peer, status);
          });
  }

  void OnPong(const std::shared_ptr<Peer>& peer, const absl::Status& status) {
    Gate::Entry entry(&gate_);
    if (!entry) return;
    const async::MonotonicTime now = clock_.Now();
    {
      async::MutexLock lock(&mutex_);
      for (Watched& watched : watched_) {
        if (watched.peer == peer) watched.ping_in_flight = false;
      }
    }
    if (status.ok()) {
      peer->SetAnswered(now);
      return;
    }
    const absl::Duration silence = async::TimeBetween(peer->last_heard(), now);
    if (absl::IsFailedPrecondition(status)) {
      Report(peer, absl::StrCat("is gone: ", status.message()));
    } else if (absl::IsUnavailable(status) &&
               silence >= options_.unreachable_limit) {
      Report(peer, absl::StrCat("is out of reach: ", status.message()));
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
                                 Ping ping, OnLost on_lost)
    : state_(std::make_shared<State>(options, clock, std::move(ping),
                                     std::move(on_lost))) {}

LivenessMonitor::~LivenessMonitor() { Stop(); }

void LivenessMonitor::Watch(std::shared_ptr<Peer> peer) {
  state_->Watch(std::move(peer));
}

void LivenessMonitor::Stop() { state_->Stop(); }

}  // namespace hawser::rpc
