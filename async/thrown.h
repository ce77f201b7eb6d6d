// Conversion of exceptions thrown by user code into statuses. Hawser itself
// throws nothing, and an exception never ends the process.

#ifndef HAWSER_ASYNC_THROWN_H_
#define HAWSER_ASYNC_THROWN_H_

#include <string_view>
#include <utility>

#include "absl/status/status.h"

namespace hawser::async {

// kInternal, "<who> threw <text>", of the exception that is being handled: in a
// catch block only. The end of a thread is none, and goes on.
absl::Status ThrownError(std::string_view who);

// Tells stderr, once a minute at most, of an exception that is being handled
// and for which nobody waits.
void TellOfThrown(std::string_view who);

// What `call()` returns, or R(ThrownError(who)). Costs nothing until something
// is thrown.
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

// Runs `call`, whose exceptions have nowhere to go: TellOfThrown.
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
