#ifndef HAWSER_ASYNC_INTERNAL_FUTURE_CALLBACKS_H_
#define HAWSER_ASYNC_INTERNAL_FUTURE_CALLBACKS_H_

// Template implementations of async/future.h, which includes this file.

#include <memory>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/exceptions.h"
#include "async/executor.h"
#include "async/future.h"
#include "async/internal/future_state.h"

namespace hawser::async {
namespace internal {

// Access of the nodes below to a Future.
template <class T>
struct FutureAccess {
  using State = FutureState<Result<T>>;

  static Future<T> Make(State* state) {
    state->AddReader();
    return Future<T>(state);
  }
  static Future<T> MakeReady(Result<T> result) {
    return Future<T>(new State(std::move(result)));
  }
  static State* state(const Future<T>& future) { return future.state(); }
  static Result<T> Take(Future<T> future) { return std::move(future).Take(); }
  // Same; kInternal if a copy throws.
  static Result<T> TakeSafely(Future<T> future) {
    return CatchExceptions<Result<T>>("the copy of a result",
                                      [&] { return std::move(future).Take(); });
  }
};

// Passes a result to a function. Holds a reader of the state.
template <class T, class F>
class CallbackNode final : public CompletionNode {
 public:
  template <class G>
  CallbackNode(Future<T> future, G&& callback)
      : future_(std::move(future)), callback_(std::forward<G>(callback)) {}

  void Complete(bool) override {
    std::unique_ptr<CallbackNode> self(this);
    std::move(callback_)(future_);
  }

  // `callback(Future<T>&)` once `future` is ready, or now.
  static void Attach(Future<T> future, F callback) {
    auto* state = FutureAccess<T>::state(future);
    if (state->ready()) {
      std::move(callback)(future);
      return;
    }
    auto* node = new CallbackNode(std::move(future), std::move(callback));
    if (!state->AddNode(node)) node->Complete(/*cancelled=*/false);
  }

 private:
  Future<T> future_;
  F callback_;
};

template <class T, class F>
void Attach(Future<T> future, F callback) {
  CallbackNode<T, F>::Attach(std::move(future), std::move(callback));
}

// Runs a function only on cancellation. Holds a reference to the state.
template <class F>
class CancelNode final : public CompletionNode {
 public:
  template <class G>
  CancelNode(FutureStateBase* state, G&& callback)
      : state_(state), callback_(std::forward<G>(callback)) {
    state_->AddReference();
  }
  ~CancelNode() override { state_->DropReference(); }

  void Complete(bool cancelled) override {
    std::unique_ptr<CancelNode> self(this);
    if (cancelled) LogExceptions("a callback", std::move(callback_));
  }

 private:
  FutureStateBase* const state_;
  F callback_;
};

template <class R>
struct ThenValue {
  using type = R;
  static constexpr bool kIsFuture = false;
};
template <>
struct ThenValue<absl::Status> : ThenValue<void> {};
template <class U>
struct ThenValue<absl::StatusOr<U>> : ThenValue<U> {};
template <class U>
struct ThenValue<Future<U>> {
  using type = U;
  static constexpr bool kIsFuture = true;
};

// Calls a Then callback with the result of `done` and completes `promise` with
// the value that it returns.
template <class T, class F, class U>
void RunThen(F& callback, Future<T> done, Promise<U>& promise) {
  using R = std::remove_cvref_t<std::invoke_result_t<F, Result<T>>>;
  const auto call = [&]() -> R {
    return std::move(callback)(FutureAccess<T>::Take(std::move(done)));
  };
  if constexpr (std::is_void_v<R>) {
    promise.Set(CatchExceptions<absl::Status>("a callback", [&] {
      call();
      return absl::OkStatus();
    }));
  } else if constexpr (ThenValue<R>::kIsFuture) {
    absl::StatusOr<Future<U>> inner =
        CatchExceptions<absl::StatusOr<Future<U>>>("a callback", call);
    if (!inner.ok() || !inner->valid()) {
      promise.Set(inner.ok() ? absl::InternalError(
                                   "a callback returned an invalid Future")
                             : std::move(inner).status());
      return;
    }
    Attach(*std::move(inner),
           [promise = std::move(promise)](Future<U>& ready) mutable {
             promise.Set(FutureAccess<U>::TakeSafely(std::move(ready)));
           });
  } else {
    promise.Set(CatchExceptions<Result<U>>(
        "a callback", [&]() -> Result<U> { return call(); }));
  }
}

// Passes a result to a callback of Then. Holds a reader of the state.
template <class T, class F, class U>
class ThenNode final : public CompletionNode {
 public:
  template <class G>
  ThenNode(Future<T> future, G&& callback, Promise<U> promise)
      : future_(std::move(future)),
        callback_(std::forward<G>(callback)),
        promise_(std::move(promise)) {}

  void Complete(bool) override {
    std::unique_ptr<ThenNode> self(this);
    RunThen<T>(callback_, std::move(future_), promise_);
  }

 private:
  Future<T> future_;
  F callback_;
  Promise<U> promise_;
};

template <class T, class F>
using ThenFuture = Future<typename ThenValue<std::remove_cvref_t<
    std::invoke_result_t<std::decay_t<F>, Result<T>>>>::type>;

}  // namespace internal

template <class T>
template <class F>
void Future<T>::OnReady(F&& callback) const {
  state();
  internal::Attach(
      *this, [callback = std::forward<F>(callback)](Future& done) mutable {
        LogExceptions("a callback", [&] {
          std::move(callback)(std::as_const(done.state_->result()));
        });
      });
}

template <class T>
template <class F>
auto Future<T>::Then(F&& callback) && {
  using Next = internal::ThenFuture<T, F>;
  using U = typename Next::value_type;
  State* const done = state();
  Promise<U> promise;
  Next next = promise.future();
  next.SetWaitPoller(done->poller());
  if (done->ready()) {
    std::decay_t<F> run(std::forward<F>(callback));
    internal::RunThen<T>(run, std::move(*this), promise);
    return next;
  }
  auto* node = new internal::ThenNode<T, std::decay_t<F>, U>(
      std::move(*this), std::forward<F>(callback), std::move(promise));
  if (!done->AddNode(node)) node->Complete(/*cancelled=*/false);
  return next;
}

template <class T>
template <class F>
auto Future<T>::Then(Executor* executor, F&& callback) && {
  state();
  using Next = internal::ThenFuture<T, F>;
  Promise<typename Next::value_type> promise;
  Next next = promise.future();
  next.SetWaitPoller(wait_poller());
  internal::Attach(
      std::move(*this), [executor, callback = std::forward<F>(callback),
                         promise = std::move(promise)](Future& done) mutable {
        executor->Post([done = std::move(done), callback = std::move(callback),
                        promise = std::move(promise)]() mutable {
          internal::RunThen<T>(callback, std::move(done), promise);
        });
      });
  return next;
}

template <class T>
Future<T> Promise<T>::future() const {
  HAWSER_CHECK(valid()) << "use of an invalid Promise";
  return internal::FutureAccess<T>::Make(state_);
}

template <class T>
template <class F>
void Promise<T>::OnCancel(F&& callback) {
  HAWSER_CHECK(valid()) << "use of an invalid Promise";
  auto* node = new internal::CancelNode<std::decay_t<F>>(
      state_, std::forward<F>(callback));
  if (!state_->AddNode(node)) node->Complete(state_->cancelled());
}

}  // namespace hawser::async

#endif  // HAWSER_ASYNC_INTERNAL_FUTURE_CALLBACKS_H_
