#include "tests/terminal_program.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdlib>

#include "async/check.h"

namespace hawser::tests {

bool TerminalProgram::CanStart() { return access("/dev/pts/ptmx", F_OK) == 0; }

TerminalProgram::TerminalProgram(const std::string& path,
                                 const std::vector<std::string>& arguments,
                                 int columns) {
  control_ = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  HAWSER_CHECK(control_ >= 0 && grantpt(control_) == 0 &&
               unlockpt(control_) == 0)
      << "cannot create a terminal";
  winsize size = {};
  size.ws_row = 40;
  size.ws_col = static_cast<uint16_t>(columns);
  ioctl(control_, TIOCSWINSZ, &size);
  const std::string terminal = ptsname(control_);
  std::vector<char*> argv = {const_cast<char*>(path.c_str())};
  for (const std::string& argument : arguments) {
    argv.push_back(const_cast<char*>(argument.c_str()));
  }
  argv.push_back(nullptr);
  setenv("TERM", "xterm", 1);
  unsetenv("NO_COLOR");
  pid_ = fork();
  HAWSER_CHECK(pid_ >= 0) << "cannot fork";
  if (pid_ != 0) return;
  setsid();
  // The first terminal that the leader of a session opens controls it.
  const int fd = open(terminal.c_str(), O_RDWR);
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    dup2(fd, standard);
  }
  if (fd > STDERR_FILENO) close(fd);
  execv(path.c_str(), argv.data());
  _exit(127);
}

TerminalProgram::~TerminalProgram() {
  kill(-pid_, SIGKILL);
  if (!ended_) waitpid(pid_, nullptr, 0);
  close(control_);
}

bool TerminalProgram::Read(Time deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      deadline - std::chrono::steady_clock::now());
  pollfd ready{control_, POLLIN, 0};
  if (poll(&ready, 1, static_cast<int>(std::max<int64_t>(0, left.count()))) !=
      1) {
    return false;
  }
  char bytes[4096];
  const ssize_t count = read(control_, bytes, sizeof(bytes));
  // The last process that closes the terminal causes an error.
  closed_ = count <= 0;
  if (!closed_) screen_.append(bytes, static_cast<size_t>(count));
  return !closed_;
}

bool TerminalProgram::ReadUntil(const std::string& text,
                                std::chrono::seconds limit) {
  const Time deadline = std::chrono::steady_clock::now() + limit;
  while (screen_.find(text) == std::string::npos) {
    if (!Read(deadline)) return false;
  }
  return true;
}

void TerminalProgram::Type(const std::string& text) {
  HAWSER_CHECK(write(control_, text.data(), text.size()) ==
               static_cast<ssize_t>(text.size()))
      << "cannot type";
}

int TerminalProgram::Wait(std::chrono::seconds limit) {
  const Time deadline = std::chrono::steady_clock::now() + limit;
  while (Read(deadline)) {
  }
  if (!closed_) return -1;
  int status = 0;
  waitpid(pid_, &status, 0);
  ended_ = true;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace hawser::tests
