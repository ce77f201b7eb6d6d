#ifndef HAWSER_TESTS_PROGRAM_H_
#define HAWSER_TESTS_PROGRAM_H_

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

namespace hawser::tests {

// A program under test, run as a user runs it: a process with arguments, an
// exit code, and captured standard output and standard error.
//
// The process leads a new process group. The destructor kills the group, so
// that a failing test leaves no process behind. Not thread-safe.
class Program {
 public:
  // Starts `path` with `arguments`; aborts the test if that fails.
  Program(const std::string& path, const std::vector<std::string>& arguments);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  pid_t pid() const { return pid_; }

  // Waits for the end. Returns the exit code, 128 + n for signal n, or -1 if
  // the process still runs after `limit`.
  int Wait(std::chrono::seconds limit = std::chrono::seconds(120));

  // The standard output and standard error so far.
  std::string Output() const;
  std::string Errors() const;

  // Waits until Errors() contains `text`; false after `limit`.
  bool WaitForError(const std::string& text,
                    std::chrono::seconds limit = std::chrono::seconds(60));

  // Processes of the group, including its leader, whose command line contains
  // `text`.
  std::vector<pid_t> Processes(const std::string& text = "") const;

 private:
  pid_t pid_ = -1;
  int exit_code_ = -1;
  bool ended_ = false;
  std::string output_path_;
  std::string error_path_;
};

// Waits until all of `pids` have ended. False after `limit`.
bool WaitUntilGone(const std::vector<pid_t>& pids,
                   std::chrono::seconds limit = std::chrono::seconds(20));

}  // namespace hawser::tests

#endif  // HAWSER_TESTS_PROGRAM_H_
