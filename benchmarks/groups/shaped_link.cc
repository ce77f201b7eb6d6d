#include "benchmarks/groups/shaped_link.h"

#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "async/status_macros.h"

namespace hawser::benchmarks {
namespace {

constexpr char kDevice[] = "link0";

absl::StatusOr<fs::UniqueFd> OpenNamespace() {
  fs::UniqueFd file(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
  if (file.valid()) return file;
  return absl::FailedPreconditionError(
      absl::StrCat("cannot open the network namespace (", std::strerror(errno),
                   "): mount /proc"));
}

absl::Status SetNamespace(const fs::UniqueFd& file) {
  if (setns(file.get(), CLONE_NEWNET) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, "cannot enter a network namespace");
}

// The calling thread is in the new namespace afterwards.
absl::StatusOr<fs::UniqueFd> MakeNamespace() {
  if (unshare(CLONE_NEWNET) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot make a network namespace (", std::strerror(errno),
                     "): run as root, in a container with CAP_SYS_ADMIN and "
                     "CAP_NET_ADMIN"));
  }
  return OpenNamespace();
}

// Runs a command of words without spaces, in the namespace of the thread.
absl::Status RunTool(const std::string& command) {
  const std::vector<std::string> words = absl::StrSplit(command, ' ');
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (const std::string& word : words) {
    argv.push_back(const_cast<char*>(word.c_str()));
  }
  argv.push_back(nullptr);
  pid_t pid = 0;
  int error = ENOENT;
  // Not all users have the folders of the administrator's tools in PATH.
  for (const char* const folder : {"", "/usr/sbin/", "/sbin/"}) {
    if (error != ENOENT) break;
    error = posix_spawnp(&pid, absl::StrCat(folder, words[0]).c_str(), nullptr,
                         nullptr, argv.data(), environ);
  }
  if (error != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot run ", words[0], " (", std::strerror(error),
                     "): install it with: apt-get install iproute2"));
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the command \"", command,
                   "\" failed, see above: the kernel needs veth and sch_tbf, "
                   "and the process CAP_NET_ADMIN"));
}

// BBR, the default of some machines, takes the time in which two devices of one
// machine pass a packet on, some 5 us, for the round trip of the link, and then
// sends at less than its rate. Reno is what every kernel allows here; without
// losses it does not differ from CUBIC, the usual default.
absl::Status SetCongestionControl() {
  std::ofstream file("/proc/sys/net/ipv4/tcp_congestion_control");
  file << "reno" << std::flush;
  if (file.good()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "cannot write /proc/sys/net/ipv4/tcp_congestion_control: mount /proc/sys "
      "writable");
}

absl::Status Configure(int end, int mbit_per_s) {
  RETURN_IF_ERROR(RunTool(absl::StrCat("ip addr add ", ShapedLink::Address(end),
                                       "/30 dev ", kDevice)));
  RETURN_IF_ERROR(
      RunTool(absl::StrCat("tc qdisc add dev ", kDevice, " root tbf rate ",
                           mbit_per_s, "mbit burst 128kb latency 50ms")));
  RETURN_IF_ERROR(SetCongestionControl());
  // Processes of one end reach each other by it.
  RETURN_IF_ERROR(RunTool("ip link set lo up"));
  return RunTool(absl::StrCat("ip link set ", kDevice, " up"));
}

absl::Status MakeEnds(int mbit_per_s, fs::UniqueFd (&ends)[2]) {
  ASSIGN_OR_RETURN(ends[1], MakeNamespace());
  ASSIGN_OR_RETURN(ends[0], MakeNamespace());
  RETURN_IF_ERROR(RunTool(
      absl::StrCat("ip link add ", kDevice, " type veth peer name ", kDevice,
                   " netns /proc/", getpid(), "/fd/", ends[1].get())));
  RETURN_IF_ERROR(Configure(0, mbit_per_s));
  RETURN_IF_ERROR(SetNamespace(ends[1]));
  return Configure(1, mbit_per_s);
}

}  // namespace

absl::StatusOr<ShapedLink> ShapedLink::Create(int mbit_per_s) {
  ASSIGN_OR_RETURN(const fs::UniqueFd own, OpenNamespace());
  ShapedLink link;
  const absl::Status made = MakeEnds(mbit_per_s, link.namespaces_);
  const absl::Status restored = SetNamespace(own);
  RETURN_IF_ERROR(made);
  RETURN_IF_ERROR(restored);
  return link;
}

absl::Status ShapedLink::Enter(int end) const {
  return SetNamespace(namespaces_[end]);
}

std::string ShapedLink::Address(int end) {
  // Of a network for documentation (RFC 5737).
  return absl::StrCat("192.0.2.", end + 1);
}

}  // namespace hawser::benchmarks
