// The work of `hawser run`.

#ifndef HAWSER_LAUNCH_RUN_LAUNCHER_H_
#define HAWSER_LAUNCH_RUN_LAUNCHER_H_

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "launch/run/console.h"
#include "launch/run/run_options.h"

namespace hawser::launch {

// Time limits of launchers, which tests shorten.
struct LauncherTimes {
  absl::Duration join_timeout = absl::Minutes(10);
  absl::Duration lease_lifetime = absl::Seconds(15);
  // From the first failure to SIGTERM: a process that failed because of another
  // one is not reported if the cause ends within this time.
  absl::Duration notice_period = absl::Seconds(1);
};

// Runs a program on this node as `options` say, together with the launchers of
// the other nodes:
//
//   1. The launchers meet (Session). Node 0 serves the store for it.
//   2. In each attempt node 0 chooses the address of rank 0 (PortReservation),
//      and each node starts its processes (Supervisor, OutputPump).
//   3. The attempt ends when all processes of all nodes have succeeded, or at
//      the first failure anywhere (Attempt), which all launchers report; they
//      stop their processes.
//   4. After a failure that a restart may cure, and when the processes of all
//      nodes have ended, the next attempt begins at step 2.
//
// No process is left when it returns. Returns the exit code: 0 after success,
// that of the process that failed first in the last attempt, 128 + n if it was
// killed by signal n, or if signal n stopped a launcher, 127 if the program
// does not exist, and 126 if it cannot be executed. An error means that
// the job has not started:
//
//   kAlreadyExists  a port is taken, which the error names, or there is another
//                   launcher of this node.
//   others          those of Session::Join, of the store, and of the files.
//
// Call it from the main thread, before other threads start. It blocks SIGINT,
// SIGTERM, SIGHUP and SIGCHLD permanently.
absl::StatusOr<int> RunProgram(const RunOptions& options, Console* console,
                               const LauncherTimes& times = {});

}  // namespace hawser::launch

#endif  // HAWSER_LAUNCH_RUN_LAUNCHER_H_
