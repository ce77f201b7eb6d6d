#ifndef HAWSER_ASYNC_JOIN_H_
#define HAWSER_ASYNC_JOIN_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "async/future.h"
#include "async/status_macros.h"
#include "async/wait_poller.h"

namespace hawser::async {
namespace internal {

// Results of several futures; the last one to complete runs `finish`.
template <class T, class Finish>
struct JoinState {
  static constexpr size_t kNone = static_cast<size_t>(-1);

  JoinState(size_t count, Finish on_all)
      : results(count), num_pending(count), finish(std::move(on_all)) {}

  void Arrive(size_t index, Result<T> result) {
    if (!result.ok()) {
      size_t none = kNone;
      first_failed.compare_exchange_strong(none, index);
    }
    results[index].emplace(std::move(result));
    if (num_pending.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      std::move(finish)(results, first_failed.load());
    }
  }

  std::vector<std::optional<Result<T>>> results;
  std::atomic<size_t> num_pending;
  // Index of the first future that failed, in time.
  std::atomic<size_t> first_failed{kNone};
  Finish finish;
};

// `finish(std::vector<std::optional<Result<T>>>& results, size_t first_failed)`
// runs once all `futures` are ready.
template <class T, class Finish>
void Join(std::vector<Future<T>> futures, Finish finish) {
  auto state =
      std::make_shared<JoinState<T, Finish>>(futures.size(), std::move(finish));
  for (size_t i = 0; i < futures.size(); ++i) {
    HAWSER_CHECK(futures[i].valid()) << "future " << i << " of a join";
    Attach(std::move(futures[i]), [state, i](Future<T>& done) {
      state->Arrive(i, FutureAccess<T>::TakeSafely(std::move(done)));
    });
  }
}

template <class T>
std::shared_ptr<WaitPoller> PollerOf(const std::vector<Future<T>>& futures) {
  std::vector<std::shared_ptr<WaitPoller>> pollers;
  for (const Future<T>& future : futures) {
    if (future.valid() && !future.ready()) {
      pollers.push_back(future.wait_poller());
    }
  }
  return PollerOfAll(std::move(pollers));
}

}  // namespace internal

// void, or the values of several futures.
template <class T>
using JoinedValue =
    typename std::conditional_t<std::is_void_v<T>, std::type_identity<void>,
                                std::type_identity<std::vector<T>>>::type;

// Returns the values of all `futures`, in their order; Future<void> for T =
// void. Ready when all futures are, even after an error; the error is the first
// that occurred.
template <class T>
Future<JoinedValue<T>> JoinAll(std::vector<Future<T>> futures) {
  using Joined = JoinedValue<T>;
  if constexpr (std::is_void_v<T>) {
    if (futures.empty()) return MakeReadyFuture<void>(absl::OkStatus());
  } else {
    if (futures.empty()) return MakeReadyFuture<Joined>(Joined());
  }
  Promise<Joined> promise;
  Future<Joined> joined = promise.future();
  joined.SetWaitPoller(internal::PollerOf(futures));
  internal::Join(std::move(futures), [promise = std::move(promise)](
                                         auto& results, size_t failed) mutable {
    if (failed < results.size()) {
      promise.Set(internal::ToStatus(*std::move(results[failed])));
    } else if constexpr (std::is_void_v<T>) {
      promise.Set(absl::OkStatus());
    } else {
      std::vector<T> values;
      values.reserve(results.size());
      for (auto& result : results) {
        values.push_back(*std::move(*result));
      }
      promise.Set(std::move(values));
    }
  });
  return joined;
}

extern template Future<void> JoinAll(std::vector<Future<void>> futures);

// Returns the results of all `futures`, in their order, once all are ready.
// Never an error itself.
template <class T>
Future<std::vector<Result<T>>> JoinAllSettled(std::vector<Future<T>> futures) {
  using Joined = std::vector<Result<T>>;
  if (futures.empty()) return MakeReadyFuture<Joined>(Joined());
  Promise<Joined> promise;
  Future<Joined> joined = promise.future();
  joined.SetWaitPoller(internal::PollerOf(futures));
  internal::Join(std::move(futures),
                 [promise = std::move(promise)](auto& results, size_t) mutable {
                   Joined values;
                   values.reserve(results.size());
                   for (auto& result : results)
                     values.push_back(*std::move(result));
                   promise.Set(std::move(values));
                 });
  return joined;
}

}  // namespace hawser::async

#endif  // HAWSER_ASYNC_JOIN_H_
