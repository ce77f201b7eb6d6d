#ifndef HAWSER_TESTS_TERMINAL_PROGRAM_H_
#define HAWSER_TESTS_TERMINAL_PROGRAM_H_

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

namespace hawser::tests {

// A program under test on a terminal of its own, which it controls: its
// standard input, output and error. The terminal sends SIGINT to all processes
// of the program when a test types "\x03", as for Ctrl-C.
//
// The destructor kills the program and its children. Not thread-safe.
class TerminalProgram {
 public:
  // Whether this machine can make terminals. A bare chroot has no /dev/pts.
  static bool CanStart();

  // Starts `path` with `arguments` on a terminal with `columns` columns; aborts
  // the test if that fails.
  TerminalProgram(const std::string& path,
                  const std::vector<std::string>& arguments, int columns);
  ~TerminalProgram();
  TerminalProgram(const TerminalProgram&) = delete;
  TerminalProgram& operator=(const TerminalProgram&) = delete;

  // Reads what the program prints until it has printed `text`. False after
  // `limit`, or if the program and its children have ended before.
  bool ReadUntil(const std::string& text,
                 std::chrono::seconds limit = std::chrono::seconds(60));
  // Types `text`.
  void Type(const std::string& text);

  // Reads until the program and its children have ended. Returns the exit code,
  // 128 + n for signal n, or -1 if one of them still runs after `limit`.
  int Wait(std::chrono::seconds limit = std::chrono::seconds(60));

  // The text read so far. The terminal ends lines with "\r\n".
  const std::string& Screen() const { return screen_; }

 private:
  using Time = std::chrono::steady_clock::time_point;

  // Reads once. False at the end or after `deadline`.
  bool Read(Time deadline);

  int control_ = -1;
  pid_t pid_ = -1;
  bool ended_ = false;
  // Whether all processes have closed the terminal.
  bool closed_ = false;
  std::string screen_;
};

}  // namespace hawser::tests

#endif  // HAWSER_TESTS_TERMINAL_PROGRAM_H_
