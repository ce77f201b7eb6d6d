#include "launch/termination_signals.h"

#include <atomic>
#include <csignal>
#include <thread>

namespace hawser::launch {
namespace {

sigset_t Signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

void AwaitSignal() {
  const sigset_t set = Signals();
  int received = 0;
  sigwait(&set, &received);
}

}  // namespace

TerminationSignals::TerminationSignals() {
  const sigset_t set = Signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

absl::Status TerminationSignals::Serve(
    absl::FunctionRef<absl::Status(bool graceful)> shutdown) const {
  AwaitSignal();
  std::atomic<bool> ended{false};
  std::thread second([&] {
    AwaitSignal();
    if (!ended) shutdown(/*graceful=*/false).IgnoreError();
  });
  absl::Status status = shutdown(/*graceful=*/true);
  ended = true;
  // Ends the wait of that thread. A signal to the process could stay pending.
  pthread_kill(second.native_handle(), SIGINT);
  second.join();
  return status;
}

}  // namespace hawser::launch
