#include "rpc/membership/membership.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <span>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/mutex.h"
#include "async/status_macros.h"
#include "rpc/membership/lease_ring.h"
#include "rpc/membership/member_view.h"
#include "rpc/transport/gate.h"

namespace hawser::rpc {
namespace {

// Time from a change until the next watch, so that changes in quick succession
// arrive together.
constexpr absl::Duration kWatchPause = absl::Milliseconds(100);

}  // namespace

class Membership::State : public std::enable_shared_from_this<State> {
 public:
  State(Options options, MemberCallback on_event)
      : self_(options.self.incarnation),
        liveness_(options.liveness),
        stall_limit_(
            std::max(liveness_.silent_limit - 2 * liveness_.heartbeat_interval,
                     liveness_.silent_limit / 2)),
        clock_(*options.clock),
        executor_(*options.executor),
        log_(*options.log),
        view_(std::move(options.self), std::move(on_event)),
        ring_(&view_, liveness_.silent_limit) {}

  void Start() {
    const async::MonotonicTime now = clock_.Now();
    contact_since_ = now;
    last_tick_.store(now);
    lease_since_.store(now);
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
  absl::Duration lease_age(async::MonotonicTime now) const {
    return async::TimeBetween(lease_since_.load(), now);
  }

  void Stop() {
    std::vector<absl::AnyInvocable<void() &&>> dropped;
    std::optional<Watch> watch;
    {
      async::MutexLock lock(&mutex_);
      if (!std::exchange(stopped_, true)) {
        if (timer_.has_value()) clock_.Cancel(*timer_);
        if (watch_timer_.has_value()) clock_.Cancel(*watch_timer_);
      }
      dropped.swap(waiting_);
      watch.swap(watch_);
    }
    if (watch.has_value()) watch->change.Cancel();
    gate_.Close();
  }

 private:
  struct SuspectReport {
    WorkerInfo worker;
    std::string reason;
  };

  // The current watch of the store: of the log, and of the leases of some
  // members.
  struct Watch {
    uint64_t number = 0;
    MembershipLog::Position position;
    std::vector<Incarnation> leases;
    async::Future<std::vector<std::string>> change;
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
      renewal_due_ = true;
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
      const absl::Status status = Round();
      store_reachable_.store(status.ok());
      if (status.ok()) continue;
      // A worker that can write to the store but not read from it must lose its
      // lease, so that it reads before it renews again.
      must_read_ = true;
      contact_since_ = async::kNever;
    }
  }

  absl::Status Round() {
    std::vector<absl::AnyInvocable<void() &&>> waiting;
    bool renew = false;
    {
      async::MutexLock lock(&mutex_);
      waiting.swap(waiting_);
      renew = std::exchange(renewal_due_, false);
    }
    absl::Status read = ProcessChange();
    if (read.ok() && (must_read_ || !waiting.empty() || stalled())) {
      read = ReadEvents();
    }
    for (auto& done : waiting) std::move(done)();
    RETURN_IF_ERROR(read);
    if (!view_.departed(self_)) {
      if (renew) RETURN_IF_ERROR(Renew());
      RETURN_IF_ERROR(DeclareReported());
      RETURN_IF_ERROR(DeclareLapsed());
    }
    WatchStore();
    return absl::OkStatus();
  }

  bool stalled() const {
    return num_stalls_.load(std::memory_order_acquire) !=
           num_settled_stalls_.load(std::memory_order_acquire);
  }

  absl::Status Renew() {
    RETURN_IF_ERROR(log_.Renew(self_, ++count_, liveness_.silent_limit));
    const async::MonotonicTime now = clock_.Now();
    if (contact_since_ == async::kNever ||
        async::TimeBetween(renewed_, now) > stall_limit_) {
      contact_since_ = now;
    }
    renewed_ = now;
    lease_since_.store(now);
    return absl::OkStatus();
  }

  // Reading a long log takes time, during which the lease must not lapse.
  absl::Status RenewIfDue() {
    if (view_.departed(self_) || async::TimeBetween(renewed_, clock_.Now()) <
                                     liveness_.heartbeat_interval) {
      return absl::OkStatus();
    }
    return Renew();
  }

  // Reads the log to its end. Resolves earlier stalls.
  absl::Status ReadEvents() {
    const uint64_t stalls = num_stalls_.load(std::memory_order_acquire);
    while (true) {
      ASSIGN_OR_RETURN(MembershipLog::Part part, log_.Read(read_.end));
      Apply(std::move(part));
      if (!read_.more) break;
      // Renew only after a read.
      RETURN_IF_ERROR(RenewIfDue());
    }
    must_read_ = false;
    num_settled_stalls_.store(stalls, std::memory_order_release);
    return absl::OkStatus();
  }

  // Processes the result of the last watch, if it has ended.
  absl::Status ProcessChange() {
    Watch watch;
    {
      async::MutexLock lock(&mutex_);
      if (!watch_.has_value() || !watch_->change.ready()) {
        return absl::OkStatus();
      }
      watch = *std::move(watch_);
      watch_.reset();
    }
    const absl::StatusOr<std::vector<std::string>>& values =
        watch.change.result();
    const bool complete =
        values.ok() && values->size() == 1 + watch.leases.size();
    next_watch_ = async::AddDelay(
        clock_.Now(), complete ? kWatchPause : liveness_.heartbeat_interval);
    RETURN_IF_ERROR(values.status());
    if (!complete) {
      return absl::InternalError("the store's reply to a watch is incomplete");
    }
    for (size_t i = 0; i < watch.leases.size(); ++i) {
      if (!(*values)[1 + i].empty()) continue;
      ring_.AddSuspect(watch.leases[i]);
    }
    // The log was read further since.
    if (watch.position != read_.end) return absl::OkStatus();
    ASSIGN_OR_RETURN(MembershipLog::Part part,
                     log_.Parse(watch.position, (*values)[0]));
    Apply(std::move(part));
    return read_.more ? ReadEvents() : absl::OkStatus();
  }

  void Apply(MembershipLog::Part part) {
    for (const v1::MembershipEvent& event : part.events) {
      num_applied_.fetch_add(1);
      const std::optional<Incarnation> newcomer = view_.Apply(event);
      ring_.OnViewChanged();
      if (newcomer.has_value()) ring_.AddNewcomer(*newcomer, clock_.Now());
    }
    part.events.clear();
    read_ = std::move(part);
  }

  absl::Status DeclareReported() {
    std::vector<SuspectReport> suspect_reports;
    {
      async::MutexLock lock(&mutex_);
      suspect_reports.swap(suspect_reports_);
    }
    bool declared = false;
    for (size_t i = 0; i < suspect_reports.size(); ++i) {
      const SuspectReport& report = suspect_reports[i];
      if (view_.departed(report.worker.incarnation)) continue;
      absl::Status status = log_.Append(
          LostEvent(report.worker.incarnation, self_, report.reason));
      declared = true;
      if (status.ok()) continue;
      // Wait until the store is reachable again.
      async::MutexLock lock(&mutex_);
      suspect_reports_.insert(suspect_reports_.end(),
                              suspect_reports.begin() + i,
                              suspect_reports.end());
      return status;
    }
    return declared ? ReadEvents() : absl::OkStatus();
  }

  // Declares members lost whose leases have lapsed. If this worker was in
  // contact with the store for less than `silent_limit`, others may have been
  // out of contact too, and get time to renew their leases.
  absl::Status DeclareLapsed() {
    const std::vector<Incarnation> suspects = ring_.Suspects();
    if (suspects.empty() || contact_since_ == async::kNever ||
        async::TimeBetween(contact_since_, clock_.Now()) <
            liveness_.silent_limit) {
      return absl::OkStatus();
    }
    absl::flat_hash_set<Incarnation> checked(suspects.begin(), suspects.end());
    for (const Incarnation suspect : suspects) {
      ASSIGN_OR_RETURN(const bool lost, DeclareIfLapsed(suspect));
      if (lost) RETURN_IF_ERROR(DeclareFollowers(suspect, checked));
      ring_.RemoveSuspect(suspect);
    }
    return ReadEvents();
  }

  // Returns whether the lease has lapsed.
  absl::StatusOr<bool> DeclareIfLapsed(Incarnation suspect) {
    ASSIGN_OR_RETURN(const std::string count, log_.ReadLease(suspect));
    if (!count.empty()) return false;
    RETURN_IF_ERROR(log_.Append(
        LostEvent(suspect, self_,
                  absl::StrCat("did not renew its lease for ",
                               absl::FormatDuration(liveness_.silent_limit)))));
    return true;
  }

  // Declares members after a lost one lost, up to the first that lives: the
  // dead may have been the only ones that watched them. A newcomer does not
  // declare others lost yet. `checked` are members whose leases were read.
  absl::Status DeclareFollowers(Incarnation lost,
                                absl::flat_hash_set<Incarnation>& checked) {
    for (const Incarnation next : ring_.MembersAfter(lost)) {
      if (!checked.insert(next).second) continue;
      RETURN_IF_ERROR(RenewIfDue());
      ASSIGN_OR_RETURN(const bool also_lost, DeclareIfLapsed(next));
      if (!also_lost && !ring_.IsNewcomer(next)) break;
    }
    return absl::OkStatus();
  }

  // Makes sure that log and leases are watched, or will be after the pause.
  void WatchStore() {
    const async::MonotonicTime now = clock_.Now();
    if (now < next_watch_) {
      async::MutexLock lock(&mutex_);
      if (stopped_ || watch_timer_.has_value()) return;
      watch_timer_ = clock_.CallAt(next_watch_, [state = shared_from_this()] {
        {
          async::MutexLock timer_lock(&state->mutex_);
          state->watch_timer_.reset();
        }
        state->BeginRound();
      });
      return;
    }
    const std::vector<Incarnation>& leases = ring_.LeasesToWatch(now);
    std::optional<Watch> outdated;
    {
      async::MutexLock lock(&mutex_);
      if (watch_.has_value() && watch_->position == read_.end &&
          watch_->leases == leases) {
        return;
      }
      outdated.swap(watch_);
    }
    if (outdated.has_value()) outdated->change.Cancel();
    Watch watch{.number = ++num_watches_,
                .position = read_.end,
                .leases = leases,
                .change = log_.WhenChanged(read_, leases)};
    const async::Future<std::vector<std::string>> change = watch.change;
    bool stopped = false;
    {
      async::MutexLock lock(&mutex_);
      stopped = stopped_;
      if (!stopped) watch_ = std::move(watch);
    }
    if (stopped) {
      change.Cancel();
      return;
    }
    change.OnReady([state = shared_from_this(), number = num_watches_](
                       const absl::StatusOr<std::vector<std::string>>&) {
      state->OnChange(number);
    });
  }

  void OnChange(uint64_t number) {
    Gate::Entry entry(&gate_);
    if (!entry) return;
    {
      async::MutexLock lock(&mutex_);
      if (!watch_.has_value() || watch_->number != number) return;
    }
    BeginRound();
  }

  const Incarnation self_;
  const LivenessOptions liveness_;
  // A worker that stalled for this long may have been declared lost. Others
  // measure from the last renewal that they saw, which may be one interval
  // older than the last tick, which in turn may be one interval old.
  const absl::Duration stall_limit_;
  async::Clock& clock_;
  async::Executor& executor_;
  MembershipLog& log_;
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
  // The last renewal, or Start.
  std::atomic<async::MonotonicTime> lease_since_{};

  // State of the current round; at most one runs at a time.
  uint64_t count_ = 0;
  async::MonotonicTime renewed_{};
  // Start of the time during which renewals succeeded without a long gap;
  // kNever after a failure.
  async::MonotonicTime contact_since_ = async::kNever;
  // What was read last of the log.
  MembershipLog::Part read_;
  // Whether the log must be read before anything else: at the beginning, and
  // after an error of the store.
  bool must_read_ = true;
  MemberView view_;
  LeaseRing ring_;
  uint64_t num_watches_ = 0;
  async::MonotonicTime next_watch_{};

  async::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  bool round_pending_ ABSL_GUARDED_BY(mutex_) = false;
  bool again_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<async::TimerId> timer_ ABSL_GUARDED_BY(mutex_);
  bool renewal_due_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<Watch> watch_ ABSL_GUARDED_BY(mutex_);
  // Set during the pause before the next watch.
  std::optional<async::TimerId> watch_timer_ ABSL_GUARDED_BY(mutex_);
  std::vector<SuspectReport> suspect_reports_ ABSL_GUARDED_BY(mutex_);
  // Callbacks passed to CatchUp.
  std::vector<absl::AnyInvocable<void() &&>> waiting_ ABSL_GUARDED_BY(mutex_);
};

Membership::Membership(Options options, MemberCallback on_event)
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
absl::Duration Membership::lease_age(async::MonotonicTime now) const {
  return state_->lease_age(now);
}

void Membership::Stop() { state_->Stop(); }

}  // namespace hawser::rpc
