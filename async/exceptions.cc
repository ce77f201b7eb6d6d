#include "async/exceptions.h"

#include <cxxabi.h>

#include <chrono>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "async/log_rate_limiter.h"
#include "async/mutex.h"

namespace hawser::async {
namespace {

// Logs exceptions, rate-limited, with the number of those not logged.
class ExceptionLogger {
 public:
  void Log(const absl::Status& error) {
    MutexLock lock(&mutex_);
    if (!limit_.ShouldLog(std::chrono::steady_clock::now())) {
      ++num_unlogged_;
      return;
    }
    // The text may have come from a peer.
    std::fprintf(stderr,
                 "hawser: %s, and no caller waits for the error (%" PRIu64
                 " more not logged)\n",
                 absl::CHexEscape(error.message()).c_str(),
                 std::exchange(num_unlogged_, 0));
  }

 private:
  Mutex mutex_;
  LogRateLimiter limit_ ABSL_GUARDED_BY(mutex_);
  uint64_t num_unlogged_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace

absl::Status ExceptionError(std::string_view who) {
  const auto error = [who](absl::string_view what) {
    return absl::InternalError(absl::StrCat(
        absl::string_view(who.data(), who.size()), " threw ", what));
  };
#ifdef __cpp_exceptions
  try {
    throw;
  } catch (const abi::__forced_unwind&) {
    // Thread cancellation, which must not be caught.
    throw;
  } catch (const std::exception& exception) {
    return error(exception.what());
  } catch (...) {
  }
#endif
  return error("an object that is not a std::exception");
}

void LogException(std::string_view who) {
  static ExceptionLogger* const logger = new ExceptionLogger;
  logger->Log(ExceptionError(who));
}

}  // namespace hawser::async
