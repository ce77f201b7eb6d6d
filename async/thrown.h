// Conversion of exceptions thrown by user code into statuses. Hawser itself
// does not throw, and an exception never ends the process.

#ifndef HAWSER_ASYNC_THROWN_H_
#define HAWSER_ASYNC_THROWN_H_

#include <string_view>
#include <utility>

#include "absl/status/status.h"

namespace hawser::async {

// Returns kInternal, "<who> threw <text>", for the exception being handled.
// Call it in a catch block only. Thread cancellation is not an exception and is
// rethrown.
absl::Status ThrownError(std::string_view who);

// Logs to stderr, at most once a minute, an exception that is being handled and
// that no caller waits for.
void TellOfThrown(std::string_view who);

// Returns `call()`, or R(ThrownError(who)) if it throws. Costs nothing unless
// it throws.
template <class R, class F>
R CatchThrown(std::string_view who, F&& call) {
#ifdef __cpp_exceptions
  try {
    return std::forward<F>(call)();
  } catch (...) {
    return R(ThrownError(who));
  }
#else
  return std::forward<F>(call)();
#endif
}

// Runs `call` and logs its exceptions with TellOfThrown.
template <class F>
void EndThrown(std::string_view who, F&& call) {
#ifdef __cpp_exceptions
  try {
    std::forward<F>(call)();
  } catch (...) {
    TellOfThrown(who);
  }
#else
  std::forward<F>(call)();
#endif
}

}  // namespace hawser::async

#endif  // HAWSER_ASYNC_THROWN_H_
