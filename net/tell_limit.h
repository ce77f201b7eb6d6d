// How often one thing is said on stderr.

#ifndef HAWSER_NET_TELL_LIMIT_H_
#define HAWSER_NET_TELL_LIMIT_H_

#include <chrono>

#include "async/clock.h"

namespace hawser::net {

// Whoever makes a process say something, such as by calling it, does not flood
// its log: once a minute at most. Not thread-safe.
class TellLimit {
 public:
  static constexpr std::chrono::minutes kInterval{1};

  // Whether to say it, at `now`, which is then counted from.
  bool MayTell(async::MonotonicTime now) {
    if (now < not_before_) return false;
    not_before_ = now + kInterval;
    return true;
  }

 private:
  async::MonotonicTime not_before_ = async::MonotonicTime::min();
};

}  // namespace hawser::net

#endif  // HAWSER_NET_TELL_LIMIT_H_
