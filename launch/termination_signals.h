#ifndef HAWSER_LAUNCH_TERMINATION_SIGNALS_H_
#define HAWSER_LAUNCH_TERMINATION_SIGNALS_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace hawser::launch {

// Handling of SIGTERM and SIGINT by a worker, which leaves its job when it
// receives one. A supervisor sends SIGTERM and, after a delay, SIGKILL.
//
//   int main() {
//     const launch::TerminationSignals signals;
//     ... auto worker = launch::Worker::Start(...); ...
//     status = signals.Serve(
//         [&](bool graceful) { return (*worker)->Shutdown(graceful); });
//   }
//
// Not thread-safe.
class TerminationSignals {
 public:
  // Blocks both signals permanently in the calling thread and in the threads
  // that it starts later. Must be called from the main thread, before other
  // threads start.
  TerminationSignals();
  TerminationSignals(const TerminationSignals&) = delete;
  TerminationSignals& operator=(const TerminationSignals&) = delete;

  // Waits for a signal, then calls `shutdown(true)` and returns its result. A
  // second signal that arrives before it returns calls `shutdown(false)` from
  // another thread, which shall make the first call return. If it does not
  // return within a second, because a handler blocks, the process ends with
  // exit code 2, as by SIGKILL.
  absl::Status Serve(
      absl::FunctionRef<absl::Status(bool graceful)> shutdown) const;
};

}  // namespace hawser::launch

#endif  // HAWSER_LAUNCH_TERMINATION_SIGNALS_H_
