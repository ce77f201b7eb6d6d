#include "ipc/peer_process.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace hawser::ipc {
namespace {

// One system call copies at most 2 GiB.
constexpr size_t kMaxCopy = size_t{1} << 30;

bool IsReadable(int fd) {
  pollfd entry{.fd = fd, .events = POLLIN, .revents = 0};
  return poll(&entry, 1, 0) > 0;
}

}  // namespace

const std::string& BootId() {
  static const std::string* const id = [] {
    auto* text = new std::string;
    std::ifstream file("/proc/sys/kernel/random/boot_id");
    std::getline(file, *text);
    return text;
  }();
  return *id;
}

absl::StatusOr<std::shared_ptr<const PeerProcess>> PeerProcess::Of(int socket) {
  ucred credentials{};
  socklen_t size = sizeof(credentials);
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0 ||
      credentials.pid <= 0) {
    return absl::UnavailableError(
        "the peer's process is not visible from this pid namespace");
  }
  if (credentials.uid != geteuid()) {
    return absl::PermissionDeniedError(
        absl::StrCat("the peer's process runs as user ", credentials.uid,
                     ", not of user ", geteuid()));
  }
  fs::UniqueFd pidfd(
      static_cast<int>(syscall(SYS_pidfd_open, credentials.pid, 0)));
  if (!pidfd.valid()) {
    return absl::UnavailableError(absl::StrCat(
        "cannot watch the peer's process: ", std::strerror(errno)));
  }
  return std::shared_ptr<const PeerProcess>(
      new PeerProcess(credentials.pid, std::move(pidfd)));
}

absl::StatusOr<uint64_t> PeerProcess::StartTimeOf(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/stat"));
  std::string text;
  std::getline(file, text);
  // The name of the program is in brackets, and may contain any character.
  const size_t name_end = text.rfind(')');
  if (name_end != std::string::npos) {
    std::istringstream fields(text.substr(name_end + 1));
    std::string field;
    // Field 22 of the line: the name is field 2.
    for (int i = 3; i <= 22; ++i) fields >> field;
    uint64_t start_time = 0;
    if (absl::SimpleAtoi(field, &start_time)) return start_time;
  }
  return absl::UnavailableError(
      absl::StrCat("process ", pid, " has ended, or is not visible from here"));
}

absl::StatusOr<std::shared_ptr<const PeerProcess>> PeerProcess::Open(
    pid_t pid, uint64_t start_time) {
  fs::UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd.valid()) {
    return absl::UnavailableError(
        absl::StrCat("cannot watch process ", pid, ": ", std::strerror(errno)));
  }
  // The descriptor may refer to a later process.
  const absl::StatusOr<uint64_t> started = StartTimeOf(pid);
  if (!started.ok()) return started.status();
  if (*started != start_time) {
    return absl::UnavailableError(absl::StrCat("process ", pid, " has ended"));
  }
  return std::shared_ptr<const PeerProcess>(
      new PeerProcess(pid, std::move(pidfd)));
}

bool PeerProcess::HasEnded() const { return IsReadable(pidfd_.get()); }

absl::Status PeerProcess::Read(uint64_t address, void* to, size_t size) const {
  auto* next = static_cast<char*>(to);
  while (size > 0) {
    iovec local{.iov_base = next, .iov_len = std::min(size, kMaxCopy)};
    iovec remote{.iov_base = reinterpret_cast<void*>(address),
                 .iov_len = local.iov_len};
    const ssize_t copied = process_vm_readv(pid_, &local, 1, &remote, 1, 0);
    if (copied <= 0) {
      return absl::UnavailableError(absl::StrCat(
          "cannot read the peer's memory: ",
          copied == 0 ? "no memory at the address" : std::strerror(errno)));
    }
    next += copied;
    address += static_cast<uint64_t>(copied);
    size -= static_cast<size_t>(copied);
  }
  // The bytes may come from a new process with the same process id.
  if (HasEnded()) {
    return absl::UnavailableError("the peer's process has ended");
  }
  return absl::OkStatus();
}

}  // namespace hawser::ipc
