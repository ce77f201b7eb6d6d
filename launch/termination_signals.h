#ifndef HAWSER_LAUNCH_TERMINATION_SIGNALS_H_
#define HAWSER_LAUNCH_TERMINATION_SIGNALS_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace hawser::launch {

// Makes of SIGTERM and SIGINT what they ask of a worker: to leave its job. A
// supervisor sends SIGTERM and, when its patience ends, SIGKILL.
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
  // Blocks both signals for good in the calling thread, and so in those that it
  // starts from then on: main thread, before any other.
  TerminationSignals();
  TerminationSignals(const TerminationSignals&) = delete;
  TerminationSignals& operator=(const TerminationSignals&) = delete;

  // Waits for a signal, then returns what `shutdown(true)` returns: calls under
  // way end, new ones go elsewhere. A second signal meanwhile calls
  // `shutdown(false)` from another thread, which must make the first return.
  absl::Status Serve(
      absl::FunctionRef<absl::Status(bool graceful)> shutdown) const;
};

}  // namespace hawser::launch

#endif  // HAWSER_LAUNCH_TERMINATION_SIGNALS_H_
