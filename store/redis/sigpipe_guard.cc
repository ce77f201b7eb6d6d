#include "store/redis/sigpipe_guard.h"

#include <cerrno>
#include <ctime>

namespace hawser::store::internal {
namespace {

sigset_t Sigpipe() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGPIPE);
  return set;
}

}  // namespace

SigpipeGuard::SigpipeGuard() {
  sigset_t pending;
  sigpending(&pending);
  was_pending_ = sigismember(&pending, SIGPIPE) == 1;
  const sigset_t sigpipe = Sigpipe();
  pthread_sigmask(SIG_BLOCK, &sigpipe, &before_);
}

SigpipeGuard::~SigpipeGuard() {
  // A signal that came meanwhile belongs to this thread, which wrote.
  if (!was_pending_) {
    const sigset_t sigpipe = Sigpipe();
    const timespec at_once{};
    while (sigtimedwait(&sigpipe, nullptr, &at_once) < 0 && errno == EINTR) {
    }
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace hawser::store::internal
