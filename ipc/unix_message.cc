#include "ipc/unix_message.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

namespace hawser::ipc {
namespace {

constexpr int kType = SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK;
constexpr int kBacklog = 64;
constexpr size_t kMaxMessageBytes = 1024;
constexpr size_t kMaxFds = 2;

struct Address {
  sockaddr_un address{};
  socklen_t size = 0;
};

absl::StatusOr<Address> AbstractAddress(std::string_view name) {
  Address result;
  if (name.empty() || name.size() > sizeof(result.address.sun_path) - 1) {
    return absl::InvalidArgumentError("the name of a Unix socket is too long");
  }
  result.address.sun_family = AF_UNIX;
  // The first byte stays zero: the abstract namespace.
  std::memcpy(result.address.sun_path + 1, name.data(), name.size());
  result.size =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return result;
}

}  // namespace

absl::StatusOr<fs::UniqueFd> ListenAbstract(std::string_view name) {
  absl::StatusOr<Address> at = AbstractAddress(name);
  if (!at.ok()) return at.status();
  fs::UniqueFd fd(socket(AF_UNIX, kType, 0));
  if (!fd.valid() ||
      bind(fd.get(), reinterpret_cast<const sockaddr*>(&at->address),
           at->size) != 0 ||
      listen(fd.get(), kBacklog) != 0) {
    return absl::ErrnoToStatus(errno, "cannot listen at a Unix socket");
  }
  return fd;
}

absl::StatusOr<fs::UniqueFd> ConnectAbstract(std::string_view name) {
  absl::StatusOr<Address> at = AbstractAddress(name);
  if (!at.ok()) return at.status();
  fs::UniqueFd fd(socket(AF_UNIX, kType, 0));
  if (!fd.valid() ||
      connect(fd.get(), reinterpret_cast<const sockaddr*>(&at->address),
              at->size) != 0) {
    return absl::ErrnoToStatus(errno, "cannot connect to a Unix socket");
  }
  return fd;
}

absl::Status SendUnixMessage(int socket,
                             const google::protobuf::MessageLite& message,
                             std::span<const int> fds) {
  return SendUnixBytes(socket, message.SerializeAsString(), fds);
}

absl::Status SendUnixBytes(int socket, std::string bytes,
                           std::span<const int> fds) {
  iovec data{.iov_base = bytes.data(), .iov_len = bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxFds * sizeof(int))>
      control{};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  if (!fds.empty()) {
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(rights), fds.data(), fds.size_bytes());
  }
  if (sendmsg(socket, &header, MSG_NOSIGNAL) !=
      static_cast<ssize_t>(bytes.size())) {
    return absl::ErrnoToStatus(errno, "cannot send on a Unix socket");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<fs::UniqueFd>> ReceiveUnixMessage(
    int socket, size_t num_fds, google::protobuf::MessageLite& message) {
  std::array<char, kMaxMessageBytes> bytes;
  iovec data{.iov_base = bytes.data(), .iov_len = bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxFds * sizeof(int))>
      control{};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  const ssize_t size = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
  if (size < 0) {
    return absl::ErrnoToStatus(errno, "cannot receive on a Unix socket");
  }
  std::vector<fs::UniqueFd> fds;
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr;
       part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) {
      continue;
    }
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
      fds.emplace_back(fd);
    }
  }
  if (size == 0) return absl::UnavailableError("the peer closed the socket");
  if (fds.size() != num_fds ||
      (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0 ||
      !message.ParseFromArray(bytes.data(), static_cast<int>(size))) {
    return absl::InvalidArgumentError("the peer sent an unexpected message");
  }
  return fds;
}

}  // namespace hawser::ipc
