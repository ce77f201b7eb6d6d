// Guard against SIGPIPE while a library writes to a socket.
#ifndef HAWSER_STORE_REDIS_SIGPIPE_GUARD_H_
#define HAWSER_STORE_REDIS_SIGPIPE_GUARD_H_

#include <csignal>

namespace hawser::store::internal {

// While it lives, writing to a socket that the peer has reset fails with EPIPE
// and does not end the process. For libraries that do not pass MSG_NOSIGNAL, as
// hiredis; what the program does with SIGPIPE elsewhere stays as it is. Lives
// in one thread.
class SigpipeGuard {
 public:
  SigpipeGuard();
  ~SigpipeGuard();
  SigpipeGuard(const SigpipeGuard&) = delete;
  SigpipeGuard& operator=(const SigpipeGuard&) = delete;

 private:
  sigset_t before_;
  bool was_pending_ = false;
};

}  // namespace hawser::store::internal

#endif  // HAWSER_STORE_REDIS_SIGPIPE_GUARD_H_
