#include "tests/program.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "async/check.h"
#include "gtest/gtest.h"

namespace hawser::tests {
namespace {

using Clock = std::chrono::steady_clock;

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string MakeTemporaryFile() {
  std::string path = ::testing::TempDir() + "/program.XXXXXX";
  const int file = mkstemp(path.data());
  HAWSER_CHECK(file >= 0) << "cannot create " << path;
  close(file);
  return path;
}

int MillisecondsUntil(Clock::time_point deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      deadline - Clock::now());
  return static_cast<int>(std::max<int64_t>(0, left.count()));
}

}  // namespace

Program::Program(const std::string& path,
                 const std::vector<std::string>& arguments)
    : output_path_(MakeTemporaryFile()), error_path_(MakeTemporaryFile()) {
  std::vector<char*> argv = {const_cast<char*>(path.c_str())};
  for (const std::string& argument : arguments) {
    argv.push_back(const_cast<char*>(argument.c_str()));
  }
  argv.push_back(nullptr);
  pid_ = fork();
  HAWSER_CHECK(pid_ >= 0) << "cannot fork";
  if (pid_ == 0) {
    setpgid(0, 0);
    const int null = open("/dev/null", O_RDONLY);
    const int out = open(output_path_.c_str(), O_WRONLY | O_APPEND);
    const int err = open(error_path_.c_str(), O_WRONLY | O_APPEND);
    dup2(null, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    execv(path.c_str(), argv.data());
    _exit(127);
  }
  // Called in both processes, so that the group exists whichever runs first.
  setpgid(pid_, pid_);
}

Program::~Program() {
  kill(-pid_, SIGKILL);
  if (!ended_) waitpid(pid_, nullptr, 0);
  unlink(output_path_.c_str());
  unlink(error_path_.c_str());
}

int Program::Wait(std::chrono::seconds limit) {
  if (ended_) return exit_code_;
  // A descriptor of the process becomes readable when it ends.
  const int process = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
  HAWSER_CHECK(process >= 0) << "cannot watch a process";
  pollfd end{process, POLLIN, 0};
  const int ready = poll(&end, 1, MillisecondsUntil(Clock::now() + limit));
  close(process);
  if (ready != 1) return -1;
  int status = 0;
  waitpid(pid_, &status, 0);
  ended_ = true;
  exit_code_ =
      WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return exit_code_;
}

std::string Program::Output() const { return ReadFile(output_path_); }
std::string Program::Errors() const { return ReadFile(error_path_); }

bool Program::WaitForError(const std::string& text,
                           std::chrono::seconds limit) {
  const auto deadline = Clock::now() + limit;
  const int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  HAWSER_CHECK(watch >= 0 &&
               inotify_add_watch(watch, error_path_.c_str(), IN_MODIFY) >= 0)
      << "cannot watch " << error_path_;
  bool found = false;
  while (!(found = Errors().find(text) != std::string::npos) &&
         Clock::now() < deadline) {
    pollfd change{watch, POLLIN, 0};
    poll(&change, 1, MillisecondsUntil(deadline));
    char events[4096];
    while (read(watch, events, sizeof(events)) > 0) {
    }
  }
  close(watch);
  return found;
}

std::vector<pid_t> Program::Processes(const std::string& text) const {
  std::vector<pid_t> found;
  DIR* const directory = opendir("/proc");
  while (const dirent* entry = readdir(directory)) {
    const pid_t pid = static_cast<pid_t>(std::atoi(entry->d_name));
    if (pid <= 0 || getpgid(pid) != pid_) continue;
    std::string command =
        ReadFile("/proc/" + std::string(entry->d_name) + "/cmdline");
    std::replace(command.begin(), command.end(), '\0', ' ');
    // The command line of a zombie process is empty.
    if (!command.empty() && command.find(text) != std::string::npos) {
      found.push_back(pid);
    }
  }
  closedir(directory);
  return found;
}

bool WaitUntilGone(const std::vector<pid_t>& pids, std::chrono::seconds limit) {
  const auto deadline = Clock::now() + limit;
  for (const pid_t pid : pids) {
    const int process = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
    if (process < 0) continue;  // Has ended already.
    pollfd end{process, POLLIN, 0};
    const int ready = poll(&end, 1, MillisecondsUntil(deadline));
    close(process);
    if (ready != 1) return false;
  }
  return true;
}

}  // namespace hawser::tests
