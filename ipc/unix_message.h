// Messages with file descriptors on Unix sockets of type SOCK_SEQPACKET.

#ifndef HAWSER_IPC_UNIX_MESSAGE_H_
#define HAWSER_IPC_UNIX_MESSAGE_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fs/unique_fd.h"
#include "google/protobuf/message_lite.h"

namespace hawser::ipc {

// Listens at a name of up to 100 bytes in the abstract namespace. Accepting and
// the functions below do not block.
absl::StatusOr<fs::UniqueFd> ListenAbstract(std::string_view name);
absl::StatusOr<fs::UniqueFd> ConnectAbstract(std::string_view name);

// Sends one message with copies of up to 2 descriptors.
absl::Status SendUnixMessage(int socket,
                             const google::protobuf::MessageLite& message,
                             std::span<const int> fds);
// Same, for raw bytes.
absl::Status SendUnixBytes(int socket, std::string bytes,
                           std::span<const int> fds);

// Receives one message. Its descriptors are close-on-exec. kUnavailable: the
// peer closed the socket. kInvalidArgument: not a message of that type with
// `num_fds` descriptors.
absl::StatusOr<std::vector<fs::UniqueFd>> ReceiveUnixMessage(
    int socket, size_t num_fds, google::protobuf::MessageLite& message);

}  // namespace hawser::ipc

#endif  // HAWSER_IPC_UNIX_MESSAGE_H_
