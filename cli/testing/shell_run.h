// Runs of `hawser run` in tests.

#ifndef HAWSER_CLI_TESTING_SHELL_RUN_H_
#define HAWSER_CLI_TESTING_SHELL_RUN_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "tests/program.h"

namespace hawser::cli {

// `hawser run` with `flags`, of a shell that runs `script`.
inline std::unique_ptr<tests::Program> RunShell(std::vector<std::string> flags,
                                                const std::string& script) {
  flags.insert(flags.begin(), "run");
  flags.insert(flags.end(), {"/bin/sh", "-c", script});
  return std::make_unique<tests::Program>("cli/hawser", flags);
}

inline std::vector<std::string> Lines(const std::string& text) {
  return absl::StrSplit(text, '\n', absl::SkipEmpty());
}

inline std::string Content(const std::filesystem::path& path) {
  std::ostringstream content;
  content << std::ifstream(path).rdbuf();
  return content.str();
}

// A new directory.
inline std::string NewDirectory() {
  std::string path = testing::TempDir() + "/run_XXXXXX";
  EXPECT_NE(mkdtemp(path.data()), nullptr);
  return path;
}

// All processes of the machine whose command line contains `marker`.
inline std::vector<pid_t> ProcessesWith(const std::string& marker) {
  std::vector<pid_t> pids;
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename();
    pid_t pid = 0;
    if (absl::SimpleAtoi(name, &pid) &&
        Content(entry.path() / "cmdline").find(marker) != std::string::npos) {
      pids.push_back(pid);
    }
  }
  return pids;
}

// A port of 127.0.0.1 that only programs which set SO_REUSEADDR can use.
class Port {
 public:
  explicit Port(bool listens = false) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    const int on = 1;
    setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), size), 0);
    if (listens) {
      EXPECT_EQ(listen(fd_, 1), 0);
    }
    getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
    number_ = ntohs(address.sin_port);
  }
  ~Port() { close(fd_); }
  int number() const { return number_; }

 private:
  const int fd_;
  int number_ = 0;
};

}  // namespace hawser::cli

#endif  // HAWSER_CLI_TESTING_SHELL_RUN_H_
