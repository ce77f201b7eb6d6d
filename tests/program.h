#ifndef HAWSER_TESTS_PROGRAM_H_
#define HAWSER_TESTS_PROGRAM_H_

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

namespace hawser::tests {

// A program under test, run as a user runs it: a process with arguments, an
// exit code and two streams of output.
//
// The process leads a process group of its own, which is killed with this
// object, so that a failing test leaves nothing running. Not thread-safe.
class Program {
 public:
  // Starts `path` with `arguments`; aborts the test if that cannot be done.
  Program(const std::string& path, const std::vector<std::string>& arguments);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  pid_t pid() const { return pid_; }

  // Waits for the end and returns the exit code, 128 + n for signal n, or -1 if
  // it is still running after `limit`.
  int Wait(std::chrono::seconds limit = std::chrono::seconds(120));

  // What has been written so far.
  std::string Output() const;
  std::string Errors() const;

  // Waits until Errors() contains `text`; false after `limit`.
  bool WaitForError(const std::string& text,
                    std::chrono::seconds limit = std::chrono::seconds(60));

  // Processes of the group whose command line contains `text`, this program's
  // first process included.
  std::vector<pid_t> Processes(const std::string& text = "") const;

 private:
  pid_t pid_ = -1;
  int exit_code_ = -1;
  bool ended_ = false;
  std::string output_path_;
  std::string error_path_;
};

// Whether all of `pids` end within `limit`.
bool WaitUntilGone(const std::vector<pid_t>& pids,
                   std::chrono::seconds limit = std::chrono::seconds(20));

}  // namespace hawser::tests

#endif  // HAWSER_TESTS_PROGRAM_H_
