#ifndef HAWSER_ASYNC_CHECK_H_
#define HAWSER_ASYNC_CHECK_H_

#include <ostream>
#include <sstream>

// Ends the process, naming file, line and condition, if `condition` is false.
// For our own invariants only: errors that a peer, a file or user data can
// cause are returned as absl::Status.
//
//   HAWSER_CHECK(begin <= end) << "range of shard " << shard;
#define HAWSER_CHECK(condition)                                         \
  __builtin_expect(static_cast<bool>(condition), true)                  \
      ? (void)0                                                         \
      : ::hawser::async::internal::CheckVoidify() &                     \
            ::hawser::async::internal::CheckFailure(__FILE__, __LINE__, \
                                                    #condition)         \
                .stream()

namespace hawser::async::internal {

// Collects the message; its destructor aborts the process.
class CheckFailure {
 public:
  CheckFailure(const char* file, int line, const char* condition);
  [[noreturn]] ~CheckFailure();

  std::ostream& stream() { return stream_; }

 private:
  std::ostringstream stream_;
};

// Binds weaker than << and stronger than ?:.
struct CheckVoidify {
  void operator&(std::ostream&) const {}
};

}  // namespace hawser::async::internal

#endif  // HAWSER_ASYNC_CHECK_H_
