#include "rpc/membership/membership.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/mutex.h"
#include "async/status_macros.h"
#include "rpc/membership/lease_observer.h"
#include "rpc/transport/gate.h"

namespace hawser::rpc {
namespace {

// Number of fresh leases after which a round stops checking.
constexpr int kFreshLeases = 2;

}  // namespace

class Membership::State : public std::enable_shared_from_this<State> {
 public:
  State(Options options, OnEvent on_event)
      : self_(std::move(options.self)),
        liveness_(options.liveness),
        stall_limit_(
            std::max(liveness_.silent_limit - 2 * liveness_.heartbeat_interval,
                     liveness_.silent_limit / 2)),
        clock_(*options.clock),
        executor_(*options.executor),
        log_(*options.log),
        on_event_(std::move(on_event)),
        leases_(std::max(4 * liveness_.heartbeat_interval,
                         liveness_.silent_limit / 2)) {}

  void Start() {
    renewed_ = clock_.Now();
    last_tick_.store(renewed_);
    started_.store(true, std::memory_order_release);
    Tick();
  }

  void ReportSuspect(const WorkerInfo& worker, std::string reason) {
    {
      async::MutexLock lock(&mutex_);
      suspect_reports_.push_back({worker, std::move(reason)});
    }
    BeginRound();
  }

  void CatchUp(absl::AnyInvocable<void() &&> done) {
    {
      async::MutexLock lock(&mutex_);
      if (stopped_) return;
      waiting_.push_back(std::move(done));
    }
    BeginRound();
  }

  bool MaybeFenced(async::MonotonicTime now) const {
    if (!started_.load(std::memory_order_acquire)) return false;
    // Read first, because the tick that ends a stall counts the stall before.
    const async::MonotonicTime last_tick =
        last_tick_.load(std::memory_order_acquire);
    return async::TimeBetween(last_tick, now) > stall_limit_ ||
           num_stalls_.load(std::memory_order_acquire) !=
               num_settled_stalls_.load(std::memory_order_acquire);
  }

  uint64_t num_events() const { return num_applied_.load(); }
  bool store_reachable() const { return store_reachable_.load(); }

  void Stop() {
    std::vector<absl::AnyInvocable<void() &&>> dropped;
    {
      async::MutexLock lock(&mutex_);
      if (!std::exchange(stopped_, true) && timer_.has_value()) {
        clock_.Cancel(*timer_);
      }
      dropped.swap(waiting_);
    }
    gate_.Close();
  }

 private:
  struct SuspectReport {
    WorkerInfo worker;
    std::string reason;
  };

  // Timer callback: records that this process is running, and starts a round.
  void Tick() {
    Gate::Entry entry(&gate_);
    if (!entry) return;
    const async::MonotonicTime now = clock_.Now();
    if (async::TimeBetween(last_tick_.load(), now) > stall_limit_) {
      num_stalls_.fetch_add(1, std::memory_order_release);
    }
    last_tick_.store(now, std::memory_order_release);
    {
      async::MutexLock lock(&mutex_);
      if (stopped_) return;
      timer_ =
          clock_.CallAfter(liveness_.heartbeat_interval,
                           [state = shared_from_this()] { state->Tick(); });
    }
    BeginRound();
  }

  void BeginRound() {
    if (!started_.load(std::memory_order_acquire)) return;
    {
      async::MutexLock lock(&mutex_);
      if (stopped_) return;
      again_ = true;
      if (std::exchange(round_pending_, true)) return;
    }
    executor_.Post([state = shared_from_this()] {
      Gate::Entry entry(&state->gate_);
      if (entry) state->RunRounds();
    });
  }

  void RunRounds() {
    while (true) {
      {
        async::MutexLock lock(&mutex_);
        if (stopped_ || !std::exchange(again_, false)) {
          round_pending_ = false;
          return;
        }
      }
      store_reachable_.store(Round().ok());
    }
  }

  absl::Status Round() {
    std::vector<absl::AnyInvocable<void() &&>> waiting;
    {
      async::MutexLock lock(&mutex_);
      waiting.swap(waiting_);
    }
    const absl::Status read = ReadEvents();
    for (auto& done : waiting) std::move(done)();
    RETURN_IF_ERROR(read);
    if (departed_.contains(self_.incarnation)) return absl::OkStatus();
    RETURN_IF_ERROR(Renew());
    RETURN_IF_ERROR(DeclareReported());
    RETURN_IF_ERROR(WatchLeases());
    return ReadEvents();
  }

  absl::Status Renew() {
    renewed_ = clock_.Now();
    return log_.Renew(self_.incarnation, ++count_);
  }

  // Reading a long log takes time, during which other members measure the
  // lease.
  absl::Status RenewIfDue() {
    if (departed_.contains(self_.incarnation) ||
        async::TimeBetween(renewed_, clock_.Now()) <
            liveness_.heartbeat_interval) {
      return absl::OkStatus();
    }
    return Renew();
  }

  // Reads the log to its end. Resolves earlier stalls.
  absl::Status ReadEvents() {
    const uint64_t stalls = num_stalls_.load(std::memory_order_acquire);
    while (true) {
      ASSIGN_OR_RETURN(const MembershipLog::Part part, log_.Read(read_up_to_));
      for (const v1::MembershipEvent& event : part.events) {
        num_applied_.fetch_add(1);
        Apply(event);
      }
      read_up_to_ = part.end;
      if (!part.more) break;
      // Renew only after a read: a worker that can write to the store but not
      // read from it must lose its lease.
      RETURN_IF_ERROR(RenewIfDue());
    }
    num_settled_stalls_.store(stalls, std::memory_order_release);
    return absl::OkStatus();
  }

  void Apply(const v1::MembershipEvent& event) {
    switch (event.change_case()) {
      case v1::MembershipEvent::kJoined: {
        absl::StatusOr<WorkerInfo> worker = FromRecord(event.joined());
        if (!worker.ok() || departed_.contains(worker->incarnation)) return;
        if (!members_.emplace(worker->incarnation, *worker).second) return;
        if (worker->incarnation == self_.incarnation) {
          EndPast();
        } else if (!in_past_) {
          on_event_({.kind = MemberEvent::Kind::kJoined, .worker = *worker});
        }
        return;
      }
      case v1::MembershipEvent::kLeft:
        Remove(MemberEvent::Kind::kLeft, event.left());
        return;
      case v1::MembershipEvent::kLost:
        Remove(MemberEvent::Kind::kLost, event.lost());
        return;
      case v1::MembershipEvent::CHANGE_NOT_SET:
        return;
    }
  }

  // The workers read so far are members from now on.
  void EndPast() {
    in_past_ = false;
    std::vector<WorkerInfo> members;
    for (const auto& [incarnation, worker] : members_) {
      members.push_back(worker);
    }
    std::sort(members.begin(), members.end(),
              [](const WorkerInfo& a, const WorkerInfo& b) {
                return std::pair(a.id, ToNumber(a.incarnation)) <
                       std::pair(b.id, ToNumber(b.incarnation));
              });
    for (const WorkerInfo& worker : members) {
      on_event_({.kind = MemberEvent::Kind::kJoined, .worker = worker});
    }
  }

  void Remove(MemberEvent::Kind kind, const v1::WorkerDeparture& departure) {
    if (departed_.contains(Incarnation{departure.reporter()})) return;
    const Incarnation incarnation{departure.incarnation()};
    if (!departed_.insert(incarnation).second) return;
    // Even if this worker was declared lost before it had joined.
    WorkerInfo worker = self_;
    auto it = members_.find(incarnation);
    if (it != members_.end()) {
      worker = std::move(it->second);
      members_.erase(it);
    } else if (incarnation != self_.incarnation) {
      return;
    }
    on_event_({.kind = kind, .worker = worker, .reason = departure.reason()});
  }

  absl::Status DeclareReported() {
    std::vector<SuspectReport> suspect_reports;
    {
      async::MutexLock lock(&mutex_);
      suspect_reports.swap(suspect_reports_);
    }
    for (size_t i = 0; i < suspect_reports.size(); ++i) {
      const SuspectReport& report = suspect_reports[i];
      if (departed_.contains(report.worker.incarnation)) continue;
      absl::Status status = log_.Append(LostEvent(
          report.worker.incarnation, self_.incarnation, report.reason));
      if (status.ok()) continue;
      // Wait until the store is reachable again.
      async::MutexLock lock(&mutex_);
      suspect_reports_.insert(suspect_reports_.end(),
                              suspect_reports.begin() + i,
                              suspect_reports.end());
      return status;
    }
    return absl::OkStatus();
  }

  // The other members, by rank, starting after this worker.
  std::vector<WorkerInfo> Successors() const {
    std::vector<WorkerInfo> others;
    for (const auto& [incarnation, worker] : members_) {
      if (incarnation != self_.incarnation) others.push_back(worker);
    }
    const auto order = [this](const WorkerInfo& worker) {
      return std::tuple(worker.id < self_.id, worker.id,
                        ToNumber(worker.incarnation));
    };
    std::sort(others.begin(), others.end(),
              [&](const WorkerInfo& a, const WorkerInfo& b) {
                return order(a) < order(b);
              });
    return others;
  }

  absl::Status WatchLeases() {
    absl::flat_hash_set<Incarnation> looked_at;
    int fresh = 0;
    for (const WorkerInfo& worker : Successors()) {
      // If one member may have died, others may have too, and are checked in
      // the same round. A new fresh member in between does not end the check of
      // a suspect.
      if (fresh == kFreshLeases && suspects_.empty()) break;
      ASSIGN_OR_RETURN(const std::string count,
                       log_.ReadLease(worker.incarnation));
      looked_at.insert(worker.incarnation);
      const absl::Duration age =
          leases_.Observe(worker.incarnation, count, clock_.Now());
      if (age >= liveness_.silent_limit) {
        RETURN_IF_ERROR(log_.Append(LostEvent(
            worker.incarnation, self_.incarnation,
            absl::StrCat("did not renew its lease for ",
                         absl::FormatDuration(liveness_.silent_limit)))));
      }
      if (age < 2 * liveness_.heartbeat_interval) {
        suspects_.erase(worker.incarnation);
        if (fresh < kFreshLeases) ++fresh;
      } else {
        suspects_.insert(worker.incarnation);
      }
    }
    leases_.Keep(looked_at);
    absl::erase_if(suspects_, [&](Incarnation suspect) {
      return !looked_at.contains(suspect);
    });
    return absl::OkStatus();
  }

  const WorkerInfo self_;
  const LivenessOptions liveness_;
  // A worker that stalled for this long may have been declared lost. Others
  // measure from the last renewal that they saw, which may be one interval
  // older than the last tick, which in turn may be one interval old.
  const absl::Duration stall_limit_;
  async::Clock& clock_;
  async::Executor& executor_;
  MembershipLog& log_;
  const OnEvent on_event_;
  // Entered by callbacks that run later.
  Gate gate_;
  std::atomic<bool> started_{false};
  std::atomic<async::MonotonicTime> last_tick_{};
  // Number of stalls, and number of stalls after which the log was read to its
  // end.
  std::atomic<uint64_t> num_stalls_{0};
  std::atomic<uint64_t> num_settled_stalls_{0};
  std::atomic<uint64_t> num_applied_{0};
  std::atomic<bool> store_reachable_{true};

  // State of the current round; at most one runs at a time.
  LeaseObserver leases_;
  uint64_t count_ = 0;
  async::MonotonicTime renewed_{};
  MembershipLog::Position read_up_to_;
  absl::flat_hash_map<Incarnation, WorkerInfo> members_;
  absl::flat_hash_set<Incarnation> departed_;
  // True until the event that this worker joined is read.
  bool in_past_ = true;
  // Members whose leases had stalled when last checked.
  absl::flat_hash_set<Incarnation> suspects_;

  async::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  bool round_pending_ ABSL_GUARDED_BY(mutex_) = false;
  bool again_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<async::TimerId> timer_ ABSL_GUARDED_BY(mutex_);
  std::vector<SuspectReport> suspect_reports_ ABSL_GUARDED_BY(mutex_);
  // Callbacks passed to CatchUp.
  std::vector<absl::AnyInvocable<void() &&>> waiting_ ABSL_GUARDED_BY(mutex_);
};

Membership::Membership(Options options, OnEvent on_event)
    : state_(std::make_shared<State>(std::move(options), std::move(on_event))) {
}

Membership::~Membership() { Stop(); }

void Membership::Start() { state_->Start(); }

void Membership::ReportSuspect(const WorkerInfo& worker, std::string reason) {
  state_->ReportSuspect(worker, std::move(reason));
}

void Membership::CatchUp(absl::AnyInvocable<void() &&> done) {
  state_->CatchUp(std::move(done));
}

bool Membership::MaybeFenced(async::MonotonicTime now) const {
  return state_->MaybeFenced(now);
}

uint64_t Membership::num_events() const { return state_->num_events(); }
bool Membership::store_reachable() const { return state_->store_reachable(); }

void Membership::Stop() { state_->Stop(); }

}  // namespace hawser::rpc
