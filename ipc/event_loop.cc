#include "ipc/event_loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include "async/blocking_region.h"
#include "async/cpu_relax.h"

namespace hawser::ipc {
namespace {

// Polling stops if this many threads are blocked.
constexpr int kMaxThreads = 256;
// Polling rounds after which a thread checks whether there are too many
// threads.
constexpr int kRoundsPerTurn = 4096;
// Polling rounds between two reads of the clock.
constexpr int kRoundsPerLook = 16;
// Polling rounds after which other threads of this core get a turn, such as one
// that this thread woke.
constexpr int kRoundsPerYield = 64;
// Longest time that descriptors and deadlines go unchecked while polling finds
// work.
constexpr absl::Duration kAttention = absl::Milliseconds(1);
// One, because further events would wait for the first callback, which may
// block.
constexpr int kMaxEvents = 1;

}  // namespace

// The polling state of one thread of the loop. A blocked thread does not poll,
// so that peers signal the doorbell for the thread that replaces it.
class EventLoop::Turn final : public async::BlockingObserver {
 public:
  explicit Turn(EventLoop* loop)
      : loop_(*loop), pool_(*SetForThisThread(this)) {
    of_this_thread_ = this;
  }
  ~Turn() override {
    End();
    SetForThisThread(&pool_);
    of_this_thread_ = nullptr;
  }

  const Sources& sources() const { return *sources_; }

  // As EventLoop::OthersNeedThisThread, for a thread of any loop.
  static bool OthersNeedThisThread(const EventLoop* loop,
                                   const Source* waits_for) {
    const Turn* const turn = of_this_thread_;
    if (turn == nullptr || &turn->loop_ != loop ||
        !turn->polling_.load(std::memory_order_relaxed)) {
      return false;
    }
    if (loop->posted_any_.load(std::memory_order_relaxed)) return true;
    for (const auto& source : *turn->sources_) {
      if (source.get() != waits_for && source->HasEvent()) return true;
    }
    return false;
  }

  // Switches to the loop's current sources.
  void Refresh() {
    const uint64_t version =
        loop_.sources_version_.load(std::memory_order_acquire);
    if (version == version_) return;
    End();
    last_ = nullptr;
    version_ = version;
    sources_ = loop_.sources();
    Begin();
  }

  // The source that delivered an event last.
  void set_last(const Source* source) { last_ = source; }
  // Yields the core, if not `always` only if that source cannot deliver more
  // while this thread polls. All threads stay runnable, so the kernel can move
  // one to an idle core.
  void YieldToOthers(bool always) const {
    if (always || (last_ != nullptr && last_->PeerOnThisCore())) {
      std::this_thread::yield();
    }
  }

  void Begin() {
    polling_.store(true, std::memory_order_relaxed);
    for (const auto& source : *sources_) source->BeginPolling();
  }
  // Whether this thread may wait for events without sleeping.
  bool MaySpin() {
    if (!spins_.load(std::memory_order_relaxed)) {
      spins_.store(loop_.spin_policy_.Begin(), std::memory_order_relaxed);
    }
    return spins_.load(std::memory_order_relaxed);
  }
  void EndSpinning() {
    if (spins_.exchange(false, std::memory_order_relaxed)) {
      loop_.spin_policy_.End();
    }
  }

  // Returns true if an event arrived for which the peer will not signal.
  bool End() {
    EndSpinning();
    if (!polling_.exchange(false, std::memory_order_relaxed)) return false;
    bool came = false;
    for (const auto& source : *sources_) came |= source->EndPolling();
    return came;
  }

  void OnBlock() override {
    resume_ = polling_.load(std::memory_order_relaxed);
    if (End()) loop_.Wake();
    pool_.OnBlock();
  }
  void OnUnblock() override {
    pool_.OnUnblock();
    if (resume_) Begin();
  }

 private:
  EventLoop& loop_;
  BlockingObserver& pool_;
  std::shared_ptr<const Sources> sources_ = std::make_shared<const Sources>();
  const Source* last_ = nullptr;
  uint64_t version_ = ~uint64_t{0};
  // Also set by a LongRunGuard, while the thread works.
  std::atomic<bool> polling_{false};
  std::atomic<bool> spins_{false};
  bool resume_ = false;

  static thread_local constinit Turn* of_this_thread_;
};

thread_local constinit EventLoop::Turn* EventLoop::Turn::of_this_thread_ =
    nullptr;

absl::StatusOr<std::unique_ptr<EventLoop>> EventLoop::Create(Options options) {
  fs::UniqueFd doorbell(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  fs::UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!doorbell.valid() || !epoll.valid()) {
    return absl::ErrnoToStatus(errno, "cannot create a doorbell");
  }
  epoll_event event{.events = EPOLLIN, .data = {.fd = doorbell.get()}};
  if (epoll_ctl(epoll.get(), EPOLL_CTL_ADD, doorbell.get(), &event) != 0) {
    return absl::ErrnoToStatus(errno, "cannot watch a doorbell");
  }
  return std::unique_ptr<EventLoop>(
      new EventLoop(options, std::move(doorbell), std::move(epoll)));
}

EventLoop::EventLoop(Options options, fs::UniqueFd doorbell, fs::UniqueFd epoll)
    : options_(options),
      doorbell_(std::move(doorbell)),
      epoll_(std::move(epoll)),
      sources_(std::make_shared<const Sources>()),
      threads_({.num_threads = 1,
                .max_threads = kMaxThreads,
                .name = "rpc-memory"}) {
  // The pool runs one of them; the others start when one blocks.
  for (int i = 0; i < kMaxThreads; ++i) threads_.Post([this] { Run(); });
}

EventLoop::~EventLoop() { Shutdown(); }

void EventLoop::Add(std::shared_ptr<Source> source) {
  {
    async::MutexLock lock(&mutex_);
    auto changed = std::make_shared<Sources>(*sources_);
    changed->push_back(std::move(source));
    sources_ = std::move(changed);
    sources_version_.fetch_add(1, std::memory_order_release);
  }
  Wake();
}

void EventLoop::Remove(const Source* source) {
  async::MutexLock lock(&mutex_);
  auto changed = std::make_shared<Sources>(*sources_);
  std::erase_if(*changed, [&](const auto& s) { return s.get() == source; });
  sources_ = std::move(changed);
  sources_version_.fetch_add(1, std::memory_order_release);
}

std::shared_ptr<const EventLoop::Sources> EventLoop::sources() {
  async::MutexLock lock(&mutex_);
  return sources_;
}

absl::Status EventLoop::Watch(int fd, std::function<void()> on_ready) {
  async::MutexLock lock(&mutex_);
  epoll_event event{.events = EPOLLIN | EPOLLRDHUP | EPOLLONESHOT,
                    .data = {.fd = fd}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    return absl::ErrnoToStatus(errno, "cannot watch a socket");
  }
  watched_[fd] = std::make_shared<std::function<void()>>(std::move(on_ready));
  return absl::OkStatus();
}

void EventLoop::Unwatch(int fd) {
  std::shared_ptr<std::function<void()>> last;
  async::MutexLock lock(&mutex_);
  auto it = watched_.find(fd);
  if (it == watched_.end()) return;
  last = std::move(it->second);
  watched_.erase(it);
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

void EventLoop::Post(absl::AnyInvocable<void() &&> closure) {
  {
    async::MutexLock lock(&mutex_);
    posted_.push_back(std::move(closure));
    posted_any_.store(true, std::memory_order_release);
  }
  Wake();
}

void EventLoop::Wake() {
  const uint64_t one = 1;
  // Fails only if the counter is full, and then the thread is awake already.
  [[maybe_unused]] const ssize_t written =
      write(doorbell_.get(), &one, sizeof(one));
}

bool EventLoop::OthersNeedThisThread(const Source* source) const {
  return Turn::OthersNeedThisThread(this, source);
}

void EventLoop::WakeBy(async::MonotonicTime time) {
  if (alarm_.MustWake(time)) Wake();
}

void EventLoop::PollUntil(async::MonotonicTime time) {
  if (options_.spin <= absl::ZeroDuration()) return;
  // Of two concurrent calls, one may be lost.
  if (poll_until_.load(std::memory_order_relaxed) >= time) return;
  poll_until_.store(time, std::memory_order_relaxed);
}

bool EventLoop::RunPosted() {
  absl::AnyInvocable<void() &&> closure;
  {
    async::MutexLock lock(&mutex_);
    if (posted_.empty()) return false;
    closure = std::move(posted_.front());
    posted_.pop_front();
    posted_any_.store(!posted_.empty(), std::memory_order_relaxed);
  }
  std::move(closure)();
  return true;
}

bool EventLoop::PollOnce(Turn& turn) {
  bool any = false;
  if (posted_any_.load(std::memory_order_acquire)) any = RunPosted();
  for (const auto& source : turn.sources()) {
    if (!source->Poll()) continue;
    any = true;
    turn.set_last(source.get());
  }
  return any;
}

bool EventLoop::Attend(const Sources& sources, bool wait) {
  const async::MonotonicTime now = std::chrono::steady_clock::now();
  async::MonotonicTime next = async::kNever;
  for (const auto& source : sources) {
    next = std::min(next, source->OnTime(now));
  }
  if (wait) {
    if (!alarm_.FallAsleep(now, next)) {
      // The sleeping thread may not know a source that this thread knows.
      WakeBy(next);
      return false;
    }
    next = alarm_.time();
    // From here on, requests for an earlier time signal the doorbell. Deadlines
    // added before may have been too late for the loop above.
    for (const auto& source : sources) {
      next = std::min(next, source->OnTime(now));
    }
  }
  int timeout_ms = -1;
  if (next != async::kNever) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(std::max(next, now) - now);
    timeout_ms = static_cast<int>(std::min<int64_t>(left.count(), 3'600'000));
  }
  if (!wait || posted_any_.load(std::memory_order_acquire) ||
      stopping_.load(std::memory_order_acquire)) {
    timeout_ms = 0;
  }
  std::array<epoll_event, kMaxEvents> events;
  const int count =
      epoll_wait(epoll_.get(), events.data(), kMaxEvents, timeout_ms);
  if (wait) alarm_.WakeUp();
  for (int i = 0; i < count; ++i) {
    const int fd = events[i].data.fd;
    if (fd == doorbell_.get()) {
      // When stopping, leave the doorbell signalled for the other threads.
      if (stopping_.load(std::memory_order_acquire)) continue;
      uint64_t rung = 0;
      [[maybe_unused]] const ssize_t got =
          read(doorbell_.get(), &rung, sizeof(rung));
      // The signal may have been for the sleeping thread: this thread may
      // block, or end, before it checks the deadlines again.
      if (!wait && alarm_.anyone_sleeps()) Wake();
      continue;
    }
    std::shared_ptr<std::function<void()>> on_ready;
    {
      async::MutexLock lock(&mutex_);
      auto it = watched_.find(fd);
      if (it != watched_.end()) on_ready = it->second;
    }
    if (on_ready == nullptr) continue;
    (*on_ready)();
    // Callbacks of a descriptor run one at a time: rearm it now, unless it was
    // removed.
    async::MutexLock lock(&mutex_);
    auto it = watched_.find(fd);
    if (it == watched_.end() || it->second != on_ready) continue;
    epoll_event event{.events = EPOLLIN | EPOLLRDHUP | EPOLLONESHOT,
                      .data = {.fd = fd}};
    epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
  }
  return true;
}

void EventLoop::Run() {
  bool came = false;
  {
    Turn turn(this);
    Poll(turn);
    came = turn.End();
  }
  if (stopping_.load(std::memory_order_acquire)) return;
  threads_.Post([this] { Run(); });
  // A sleeping thread must handle the event.
  if (came) Wake();
}

void EventLoop::Poll(Turn& turn) {
  async::MonotonicTime last_event = std::chrono::steady_clock::now();
  async::MonotonicTime attended = last_event;
  const bool may_sleep = options_.spin < absl::InfiniteDuration();
  bool fresh = false;
  for (int round = 1; round < kRoundsPerTurn; ++round) {
    if (stopping_.load(std::memory_order_acquire)) return;
    turn.Refresh();
    const bool any = PollOnce(turn);
    fresh |= any;
    if (!any) async::CpuRelax();
    if (round % kRoundsPerLook != 0) continue;
    const async::MonotonicTime now = std::chrono::steady_clock::now();
    if (std::exchange(fresh, false)) {
      last_event = now;
      turn.EndSpinning();
    } else if (!turn.MaySpin() ||
               (async::TimeBetween(last_event, now) >= options_.spin &&
                now >= poll_until_.load(std::memory_order_relaxed))) {
      if (!turn.End() && !Attend(turn.sources(), /*wait=*/true)) return;
      turn.Begin();
      attended = last_event = std::chrono::steady_clock::now();
      continue;
    } else if (may_sleep) {
      turn.YieldToOthers(/*always=*/round % kRoundsPerYield == 0);
    }
    if (async::TimeBetween(attended, now) >= kAttention) {
      Attend(turn.sources(), /*wait=*/false);
      attended = now;
    }
  }
}

void EventLoop::Shutdown() {
  stopping_.store(true, std::memory_order_release);
  Wake();
  threads_.Shutdown();
  while (RunPosted()) {
  }
}

}  // namespace hawser::ipc
