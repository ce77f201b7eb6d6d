#ifndef HAWSER_ASYNC_FIRST_OF_H_
#define HAWSER_ASYNC_FIRST_OF_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "async/future.h"

namespace hawser::async {

// Returns the result of the one of `futures` that completes first; of several
// complete ones, the earliest in the list. The others are not cancelled.
// `futures` must not be empty.
inline Future<void> FirstOf(const std::vector<Future<void>>& futures) {
  HAWSER_CHECK(!futures.empty()) << "the first of no futures";
  auto promise = std::make_shared<Promise<void>>();
  Future<void> first = promise->future();
  for (const Future<void>& future : futures) {
    future.OnReady(
        [promise](const absl::Status& status) { promise->Set(status); });
  }
  return first;
}

}  // namespace hawser::async

#endif  // HAWSER_ASYNC_FIRST_OF_H_
