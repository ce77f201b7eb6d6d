#ifndef HAWSER_BENCHMARKS_CHILD_PROCESS_H_
#define HAWSER_BENCHMARKS_CHILD_PROCESS_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace hawser::benchmarks {

// A process with which this one exchanges lines of text: it reads requests from
// its standard input and writes replies to its standard output.
//
// It leads a process group of its own. The destructor kills the group. The
// kernel kills the process if the thread that started it dies. Not thread-safe.
class ChildProcess {
 public:
  // Starts `command`, which begins with the path of the executable. If that
  // does not exist, the process ends at once with code 127.
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(
      const std::vector<std::string>& command);

  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Also the id of its process group.
  pid_t pid() const { return pid_; }

  // Writes `line` and a newline. kUnavailable if the process has ended.
  absl::Status Send(const std::string& line);

  // Reads the next line, without its newline.
  //
  //   kUnavailable       the process has ended, or closed its output.
  //   kDeadlineExceeded  at `deadline` the line was not complete; a later call
  //                      reads it.
  absl::StatusOr<std::string> Receive(
      absl::Time deadline = absl::InfiniteFuture());

 private:
  ChildProcess(pid_t pid, int to, int from) : pid_(pid), to_(to), from_(from) {}

  const pid_t pid_;
  const int to_;
  const int from_;
  // Read, but not returned yet.
  std::string buffer_;
};

}  // namespace hawser::benchmarks

#endif  // HAWSER_BENCHMARKS_CHILD_PROCESS_H_
