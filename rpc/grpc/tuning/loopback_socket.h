// Tuning of TCP sockets on loopback.

#ifndef HAWSER_RPC_GRPC_TUNING_LOOPBACK_SOCKET_H_
#define HAWSER_RPC_GRPC_TUNING_LOOPBACK_SOCKET_H_

#include <string>

#include "grpcpp/support/channel_arguments.h"

namespace hawser::rpc {

// Tunes TCP connections over loopback for memory speed:
//
//   Reno, whatever the system's default: BBR paces its packets, which is
//     useless where no packet is ever lost. Every Linux kernel has Reno and
//     allows it without privileges.
//   kLoopbackReceiveBuffer: with buffers that grow to the system's limit, data
//     has left the caches when it is read.
//
// Settings that the system does not allow are skipped, and Unix sockets are
// unchanged.

// In bytes; the kernel doubles it for its own needs. If net.core.rmem_max is
// less, the buffer size is left to the system.
inline constexpr int kLoopbackReceiveBuffer = 768 << 10;

// For channels to a loopback address.
void TuneForLoopback(::grpc::ChannelArguments& arguments);

// For the sockets of a server. Connections begin with the congestion control of
// the socket that listens: one that begins with BBR goes on pacing its packets
// when it is set to Reno. So the listening socket is set to Reno, and
// connections from other machines are set back to the system's default.
class ServerSocketTuning {
 public:
  // For each socket that listens, before connections are accepted.
  void OnListening(int fd);
  // For accepted connections. Thread-safe after the last OnListening.
  void OnAccepted(int fd) const;

 private:
  std::string system_default_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_GRPC_TUNING_LOOPBACK_SOCKET_H_
