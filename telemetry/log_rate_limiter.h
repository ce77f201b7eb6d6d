// Rate limit for one kind of log message.

#ifndef HAWSER_TELEMETRY_LOG_RATE_LIMITER_H_
#define HAWSER_TELEMETRY_LOG_RATE_LIMITER_H_

#include <chrono>

namespace hawser::telemetry {

// Limits a message to one per minute, so that callers that trigger it cannot
// flood the log. Not thread-safe.
class LogRateLimiter {
 public:
  static constexpr std::chrono::minutes kInterval{1};

  // Whether to log the message at `now`. If true, the interval restarts at
  // `now`.
  bool ShouldLog(std::chrono::steady_clock::time_point now) {
    if (now < not_before_) return false;
    not_before_ = now + kInterval;
    return true;
  }

 private:
  std::chrono::steady_clock::time_point not_before_ =
      std::chrono::steady_clock::time_point::min();
};

}  // namespace hawser::telemetry

#endif  // HAWSER_TELEMETRY_LOG_RATE_LIMITER_H_
