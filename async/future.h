#ifndef HAWSER_ASYNC_FUTURE_H_
#define HAWSER_ASYNC_FUTURE_H_

#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/check.h"
#include "async/clock.h"
#include "async/executor.h"
#include "async/internal/future_state.h"
#include "async/wait_poller.h"

namespace hawser::async {

// Result type of a Future<T>: absl::StatusOr<T>, or absl::Status for void.
template <class T>
using Result = std::conditional_t<
    std::is_void_v<T>, absl::Status,
    absl::StatusOr<std::conditional_t<std::is_void_v<T>, bool, T>>>;

template <class T>
class Promise;

namespace internal {

template <class T>
struct FutureAccess;

// Whether T can be copied; std::vector<U> reports true for any U.
template <class T>
inline constexpr bool kCopyable = std::is_copy_constructible_v<T>;
template <>
inline constexpr bool kCopyable<void> = true;
template <class U>
inline constexpr bool kCopyable<std::vector<U>> = kCopyable<U>;
template <class U>
inline constexpr bool kCopyable<absl::StatusOr<U>> = kCopyable<U>;

absl::Status WaitTimeoutError(absl::Duration waited, std::string_view what);

}  // namespace internal

// The result of an asynchronous operation.
//
// A handle on shared state: copies see the same result. A single handle is not
// thread-safe; different handles may be used concurrently. On a
// default-constructed or moved-from future valid() is false, and no other
// method may be called.
//
// Results are read in place, or moved to the last reader: if an rvalue future
// is the only handle left and no callback is pending, Wait and Then move the
// result; otherwise they copy it. A move-only T must have a single reader.
template <class T>
class [[nodiscard]] Future {
 public:
  using value_type = T;

  Future() = default;
  Future(const Future& other) : state_(other.state_) {
    if (state_ != nullptr) state_->AddReader();
  }
  Future(Future&& other) noexcept
      : state_(std::exchange(other.state_, nullptr)) {}
  Future& operator=(Future other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~Future() {
    if (state_ != nullptr) state_->DropReader();
  }

  bool valid() const { return state_ != nullptr; }
  bool ready() const { return state()->ready(); }

  // Blocks until ready. The reference lives as long as this handle. On a pool
  // thread, the pool replaces the blocked thread with another one
  // (async/thread_pool.h).
  //
  // May run callbacks of the operations that the future depends on, in this
  // thread (async/wait_poller.h): do not wait with a lock that they take.
  const Result<T>& Wait() const& {
    state()->WaitUntilReady(kNever);
    return state_->result();
  }
  Result<T> Wait() && {
    state()->WaitUntilReady(kNever);
    return std::move(*this).Take();
  }

  // Returns kDeadlineExceeded, naming `what`, if the future is not ready in
  // time. The operation continues.
  Result<T> WaitUntil(MonotonicTime deadline,
                      std::string_view what = "a future") const {
    const MonotonicTime start = std::chrono::steady_clock::now();
    if (!state()->WaitUntilReady(deadline)) {
      return internal::WaitTimeoutError(
          TimeBetween(start, std::chrono::steady_clock::now()), what);
    }
    return Future(*this).Take();
  }
  Result<T> WaitFor(absl::Duration timeout,
                    std::string_view what = "a future") const {
    return WaitUntil(AddDelay(std::chrono::steady_clock::now(), timeout), what);
  }

  // The result of a ready future.
  const Result<T>& result() const& {
    HAWSER_CHECK(ready());
    return state_->result();
  }

  // Completes the future with kCancelled unless it is complete, and runs the
  // callbacks added by Promise::OnCancel. Returns true if this call completed
  // it. Other holders of the same future see the result too. Futures derived
  // from this one by Then or JoinAll get the error; futures that this one is
  // derived from are not cancelled.
  bool Cancel() const { return state()->Cancel(); }

  // Runs `callback(const Result<T>&)` once: in this call if the future is
  // ready, otherwise in the thread that completes it, under this caller's
  // TaskContext. No lock is held. Blocking work belongs on an executor.
  // Exceptions thrown by the callback are only logged to stderr
  // (async/exceptions.h).
  template <class F>
  void OnReady(F&& callback) const;

  // Passes the result to `callback(Result<T>)` as OnReady does, and returns a
  // future of the callback's result. The callback may return U, void,
  // absl::Status, absl::StatusOr<U> or Future<U>; Then returns Future<U> in
  // each case, and Future<void> for Status. An exception becomes kInternal.
  template <class F>
  auto Then(F&& callback) const& {
    return Future(*this).Then(std::forward<F>(callback));
  }
  template <class F>
  auto Then(F&& callback) &&;

  // Same, but runs `callback` on `executor`, which must live until then.
  // kCancelled if the executor drops the callback.
  template <class F>
  auto Then(Executor* executor, F&& callback) const& {
    return Future(*this).Then(executor, std::forward<F>(callback));
  }
  template <class F>
  auto Then(Executor* executor, F&& callback) &&;

  // Sets the operation that this future depends on, for which a thread polls
  // that waits for this future. Futures derived from this one by Then, JoinAll
  // or JoinAllSettled get it too. Must be called before other threads have a
  // handle on this future.
  void SetWaitPoller(std::shared_ptr<WaitPoller> poller) {
    state()->set_poller(std::move(poller));
  }
  // May be null.
  const std::shared_ptr<WaitPoller>& wait_poller() const {
    return state()->poller();
  }

 private:
  template <class>
  friend struct internal::FutureAccess;
  using State = internal::FutureState<Result<T>>;

  // Takes over one reader of `state`.
  explicit Future(State* state) : state_(state) {}

  State* state() const {
    HAWSER_CHECK(state_ != nullptr) << "use of an invalid Future";
    return state_;
  }

  // Takes the result of a ready future and releases this handle.
  Result<T> Take() && {
    Future self = std::move(*this);
    if (self.state_->sole_reader()) return std::move(self.state_->result());
    if constexpr (internal::kCopyable<T>) {
      return self.state_->result();
    } else {
      HAWSER_CHECK(false)
          << "a future with a move-only result has more than one reader";
      return absl::InternalError("unreachable");
    }
  }

  State* state_ = nullptr;
};

// The producing side of a Future. Set may be called from several threads
// concurrently: the first call wins. If the promise is dropped without Set, the
// future completes with kCancelled.
template <class T>
class Promise {
 public:
  Promise() : state_(new internal::FutureState<Result<T>>) {}
  Promise(Promise&& other) noexcept
      : state_(std::exchange(other.state_, nullptr)) {}
  Promise& operator=(Promise&& other) noexcept {
    Promise old = std::move(*this);
    state_ = std::exchange(other.state_, nullptr);
    return *this;
  }
  ~Promise() {
    if (state_ != nullptr) state_->DropPromise();
  }

  // False after being moved from; no other method may be called then.
  bool valid() const { return state_ != nullptr; }

  // May be called any number of times. A move-only result, or a result to be
  // moved rather than copied, needs a single future.
  Future<T> future() const;

  // Completes the future and runs its callbacks in this thread. Returns false
  // and drops `result` if the future is already complete.
  bool Set(Result<T> result) {
    HAWSER_CHECK(valid()) << "use of an invalid Promise";
    return state_->Set(std::move(result));
  }

  // Whether the future is complete (set or cancelled), so that work for it may
  // stop.
  bool done() const { return state_->claimed(); }

  // Runs `callback()` in the cancelling thread if a holder cancels the future,
  // or at once if it is already cancelled. If the future completes otherwise,
  // the callback is destroyed without running. Exceptions are only logged to
  // stderr.
  template <class F>
  void OnCancel(F&& callback);

 private:
  internal::FutureState<Result<T>>* state_;
};

// Returns a ready future.
template <class T>
Future<T> MakeReadyFuture(Result<T> result) {
  return internal::FutureAccess<T>::MakeReady(std::move(result));
}

}  // namespace hawser::async

#include "async/internal/future_callbacks.h"  // IWYU pragma: export

#endif  // HAWSER_ASYNC_FUTURE_H_
