// Rate limit of one kind of message on stderr.

#ifndef HAWSER_ASYNC_TELL_LIMIT_H_
#define HAWSER_ASYNC_TELL_LIMIT_H_

#include <chrono>

namespace hawser::async {

// Whoever makes a process say something, such as by calling it, does not flood
// its log: once a minute at most. Not thread-safe.
class TellLimit {
 public:
  static constexpr std::chrono::minutes kInterval{1};

  // Whether to say it, at `now`, which is then counted from.
  bool MayTell(std::chrono::steady_clock::time_point now) {
    if (now < not_before_) return false;
    not_before_ = now + kInterval;
    return true;
  }

 private:
  std::chrono::steady_clock::time_point not_before_ =
      std::chrono::steady_clock::time_point::min();
};

}  // namespace hawser::async

#endif  // HAWSER_ASYNC_TELL_LIMIT_H_
