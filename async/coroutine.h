#ifndef HAWSER_ASYNC_COROUTINE_H_
#define HAWSER_ASYNC_COROUTINE_H_

#include <coroutine>
#include <optional>
#include <utility>

#include "async/exceptions.h"
#include "async/future.h"
#include "async/status_macros.h"  // IWYU pragma: export

// Coroutines that return Future<T>.
//
//   Future<int> Sum(Client& client) {
//     CO_ASSIGN_OR_RETURN(int a, co_await client.Get("a"));
//     absl::StatusOr<int> b = co_await client.Get("b");
//     co_return a + b.value_or(0);
//   }
//
// The body starts in the caller's thread. After a co_await on a future that is
// not ready, it resumes in the thread that completes the future, under the
// TaskContext at the co_await. `co_await future` returns Result<T>; `co_return`
// takes a T, a Status or a StatusOr<T>. A coroutine that returns Future<void>
// ends with `co_return absl::OkStatus();` and must not run off the end of its
// body. Parameters taken by reference must outlive the coroutine; scope objects
// (locks, TaskContext::Scope) must not be held across a co_await. A coroutine's
// frame is always destroyed eventually, since a dropped promise completes its
// future. An exception thrown by the body becomes kInternal.

#define CO_RETURN_IF_ERROR(...)                               \
  do {                                                        \
    if (absl::Status hawser_status =                          \
            ::hawser::async::internal::ToStatus(__VA_ARGS__); \
        !hawser_status.ok()) {                                \
      co_return hawser_status;                                \
    }                                                         \
  } while (false)

#define CO_ASSIGN_OR_RETURN(lhs, ...) \
  HAWSER_CO_ASSIGN_OR_RETURN_(        \
      HAWSER_STATUS_CONCAT_(hawser_result_, __COUNTER__), lhs, __VA_ARGS__)

#define HAWSER_CO_ASSIGN_OR_RETURN_(result, lhs, ...)     \
  auto result = (__VA_ARGS__);                            \
  if (!result.ok()) co_return std::move(result).status(); \
  HAWSER_STATUS_UNPAREN_(lhs) = std::move(result).value()

namespace hawser::async {
namespace internal {

// Resumes a coroutine; lives in its frame.
template <class T>
class FutureAwaiter final : public CompletionNode {
 public:
  explicit FutureAwaiter(Future<T> future) : future_(std::move(future)) {}

  bool await_ready() const { return future_.ready(); }
  // False, which resumes the coroutine, if the future became ready.
  bool await_suspend(std::coroutine_handle<> coroutine) {
    coroutine_ = coroutine;
    return FutureAccess<T>::state(future_)->AddNode(this);
  }
  Result<T> await_resume() { return FutureAccess<T>::Take(std::move(future_)); }

  void Complete(bool) override { coroutine_.resume(); }

 private:
  Future<T> future_;
  std::coroutine_handle<> coroutine_;
};

template <class T>
class CoroutinePromise {
 public:
  Future<T> get_return_object() { return promise_.future(); }
  std::suspend_never initial_suspend() noexcept { return {}; }
  auto final_suspend() noexcept { return Completion(); }
  void return_value(Result<T> result) { result_.emplace(std::move(result)); }
  void unhandled_exception() { result_.emplace(ExceptionError("a coroutine")); }

 private:
  // Completes the future after locals and parameters are destroyed.
  struct Completion {
    bool await_ready() noexcept { return false; }
    void await_suspend(
        std::coroutine_handle<CoroutinePromise> coroutine) noexcept {
      Promise<T> promise = std::move(coroutine.promise().promise_);
      Result<T> result = *std::move(coroutine.promise().result_);
      coroutine.destroy();
      promise.Set(std::move(result));
    }
    void await_resume() noexcept {}
  };

  Promise<T> promise_;
  std::optional<Result<T>> result_;
};

}  // namespace internal

template <class T>
auto operator co_await(Future<T> future) {
  HAWSER_CHECK(future.valid()) << "co_await on an invalid Future";
  return internal::FutureAwaiter<T>(std::move(future));
}

}  // namespace hawser::async

template <class T, class... Args>
struct std::coroutine_traits<hawser::async::Future<T>, Args...> {
  using promise_type = hawser::async::internal::CoroutinePromise<T>;
};

#endif  // HAWSER_ASYNC_COROUTINE_H_
