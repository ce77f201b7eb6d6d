// Timeouts as Gloo takes them.

#ifndef HAWSER_COLLECTIVES_GLOO_GLOO_TIMEOUT_H_
#define HAWSER_COLLECTIVES_GLOO_GLOO_TIMEOUT_H_

#include <algorithm>
#include <chrono>

#include "async/clock.h"

namespace hawser::collectives {

// Gloo cannot wait forever.
inline constexpr std::chrono::milliseconds kGlooForever =
    std::chrono::hours(100);

// The time until the deadline, rounded up; 0 if it has passed.
inline std::chrono::milliseconds GlooTimeout(async::MonotonicTime deadline) {
  if (deadline == async::kNever) return kGlooForever;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(
      deadline - std::chrono::steady_clock::now());
  return std::clamp(left, std::chrono::milliseconds(0), kGlooForever);
}

}  // namespace hawser::collectives

#endif  // HAWSER_COLLECTIVES_GLOO_GLOO_TIMEOUT_H_
