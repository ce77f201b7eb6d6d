#include "async/exceptions.h"

#include <cxxabi.h>

#include <chrono>
#include <cstdint>
#include <exception>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "async/mutex.h"
#include "telemetry/log.h"
#include "telemetry/log_rate_limiter.h"

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
    telemetry::Log(
        telemetry::LogSeverity::kError,
        absl::StrCat(error.message(), ", and no caller waits for the error (",
                     std::exchange(num_unlogged_, 0), " more not logged)"));
  }

 private:
  Mutex mutex_;
  telemetry::LogRateLimiter limit_ ABSL_GUARDED_BY(mutex_);
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
