// A process of a test that reports and takes commands in lines.

#ifndef HAWSER_TESTS_FAULTS_REPORTING_PROCESS_H_
#define HAWSER_TESTS_FAULTS_REPORTING_PROCESS_H_

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace hawser::tests {

// Reports come on the process's standard output, commands go to its standard
// input. Its standard error is that of the test. The process dies with the
// test's process, and the destructor kills it with SIGKILL. Not thread-safe.
class ReportingProcess {
 public:
  // Starts `program`, a path relative to the working directory of the test;
  // aborts the test if that fails. `max_data_bytes` limits the memory that it
  // may write to (RLIMIT_DATA); 0: no limit.
  ReportingProcess(const std::string& program,
                   const std::vector<std::string>& arguments,
                   size_t max_data_bytes = 0);
  ~ReportingProcess();
  ReportingProcess(const ReportingProcess&) = delete;
  ReportingProcess& operator=(const ReportingProcess&) = delete;

  pid_t pid() const { return pid_; }

  // The next reported line; empty if the process ended or `limit` passed.
  std::optional<std::string> ReadLine(absl::Duration limit = absl::Seconds(30));

  // Readable when ReadLine may have something to return.
  int reports() const { return reports_; }

  // Sends a line. Does nothing if the process has ended.
  void WriteLine(const std::string& line);

  // Sends a signal. After SIGSTOP, waits until the process has stopped.
  void Signal(int signal);

  // The exit code, 128 + n for signal n, or -1 if the process still runs after
  // `limit`.
  int Wait(absl::Duration limit = absl::Seconds(30));

 private:
  pid_t pid_ = -1;
  // Readable when the process ends.
  int process_ = -1;
  int reports_ = -1;
  int commands_ = -1;
  std::string unread_;
  std::optional<int> exit_code_;
};

}  // namespace hawser::tests

#endif  // HAWSER_TESTS_FAULTS_REPORTING_PROCESS_H_
