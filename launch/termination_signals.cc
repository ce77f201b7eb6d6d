#include "launch/termination_signals.h"

#include <csignal>
#include <cstdlib>
#include <thread>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "telemetry/log.h"

namespace hawser::launch {
namespace {

constexpr absl::Duration kForcedEnd = absl::Seconds(1);
constexpr int kExitCode = 2;

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
  absl::Notification ended;
  std::thread second([&] {
    AwaitSignal();
    if (ended.HasBeenNotified()) return;
    std::thread last_resort([&] {
      if (ended.WaitForNotificationWithTimeout(kForcedEnd)) return;
      telemetry::Log(telemetry::LogSeverity::kError,
                     "ends at a second signal, though a handler still runs");
      std::_Exit(kExitCode);
    });
    shutdown(/*graceful=*/false).IgnoreError();
    last_resort.join();
  });
  absl::Status status = shutdown(/*graceful=*/true);
  ended.Notify();
  // Ends the wait of that thread. A signal to the process could stay pending.
  pthread_kill(second.native_handle(), SIGINT);
  second.join();
  return status;
}

}  // namespace hawser::launch
