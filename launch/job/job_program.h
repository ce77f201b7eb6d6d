// The main function of a program that runs a job of processes with roles.

#ifndef HAWSER_LAUNCH_JOB_JOB_PROGRAM_H_
#define HAWSER_LAUNCH_JOB_JOB_PROGRAM_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "launch/job/job_options.h"
#include "launch/job/stop_signals.h"
#include "launch/job/usage.h"

namespace hawser::launch {

// The program is one process of the job if a launcher has started it
// (launch/job/launched_process.h), or with --role. Otherwise it starts all
// processes on this machine, as children that run the same program. Flags are
// Abseil's: those of the program and those of launch/job/job_flags.h.
//
//   int main(int argc, char** argv) {
//     return launch::RunJobProgram(
//         {.name = "train",
//          .usage = {.summary = "Trains a model."},
//          .flags_file = __FILE__,
//          .read_flags = [] { return std::vector<launch::JobRole>{
//              {"server", absl::GetFlag(FLAGS_servers)},
//              {"trainer", absl::GetFlag(FLAGS_trainers)}}; },
//          .run = [](const launch::JobOptions& job, launch::StopSignals& stop)
//          {
//            return job.role == "server" ? Serve(job) : Train(job, stop);
//          }},
//         argc, argv);
//   }
struct JobProgram {
  // In errors, before the name of the process: "train trainer0: ...".
  std::string name = {};
  UsageText usage = {};
  // The source file with the program's flags.
  std::string flags_file = {};
  // Source files of libraries with further flags of the program.
  std::vector<std::string> library_flags_files = {};
  // Checks the program's flags and returns the roles of its job. Without roles
  // the program runs in this process alone.
  std::function<absl::StatusOr<std::vector<JobRole>>()> read_flags = nullptr;
  // Called by the launcher before processes start, so that an error of the
  // inputs is reported once. Null: nothing to check.
  std::function<absl::Status()> check = nullptr;
  // Flags that each process gets after those of the launcher. Null: none.
  std::function<std::vector<std::string>()> child_flags = nullptr;
  // The work of a process.
  std::function<absl::Status(const JobOptions& job, StopSignals& stop)> run =
      nullptr;
};

// Returns the exit code: 0 after success, 1 after an error, which is printed on
// standard error in one line, 3 (kConsequenceExitCode) if `run` returned
// kUnavailable, and 128 + n after signal n. With --help, prints the usage.
// Enters the directory in which the user called `bazel run`.
int RunJobProgram(const JobProgram& program, int argc, char** argv);

}  // namespace hawser::launch

#endif  // HAWSER_LAUNCH_JOB_JOB_PROGRAM_H_
