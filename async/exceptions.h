// Conversion of exceptions thrown by user code into statuses. Hawser itself
// does not throw, and an exception never ends the process.

#ifndef HAWSER_ASYNC_EXCEPTIONS_H_
#define HAWSER_ASYNC_EXCEPTIONS_H_

#include <string_view>
#include <utility>

#include "absl/status/status.h"

namespace hawser::async {

// Returns kInternal, "<who> threw <text>", for the exception being handled.
// Call it in a catch block only. Thread cancellation is not an exception and is
// rethrown.
absl::Status ExceptionError(std::string_view who);

// Logs, at most once a minute, an exception that is being handled and
// that no caller waits for.
void LogException(std::string_view who);

// Returns `call()`, or R(ExceptionError(who)) if it throws. Costs nothing
// unless it throws.
template <class R, class F>
R CatchExceptions(std::string_view who, F&& call) {
#ifdef __cpp_exceptions
  try {
    return std::forward<F>(call)();
  } catch (...) {
    return R(ExceptionError(who));
  }
#else
  return std::forward<F>(call)();
#endif
}

// Runs `call` and logs its exceptions with LogException.
template <class F>
void LogExceptions(std::string_view who, F&& call) {
#ifdef __cpp_exceptions
  try {
    std::forward<F>(call)();
  } catch (...) {
    LogException(who);
  }
#else
  std::forward<F>(call)();
#endif
}

}  // namespace hawser::async

#endif  // HAWSER_ASYNC_EXCEPTIONS_H_
