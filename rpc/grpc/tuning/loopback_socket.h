// Tuning of TCP sockets on loopback.

#ifndef HAWSER_RPC_GRPC_TUNING_LOOPBACK_SOCKET_H_
#define HAWSER_RPC_GRPC_TUNING_LOOPBACK_SOCKET_H_

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

// For accepted connections; those from other machines are unchanged.
void TuneIfLoopback(int connection_fd);

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_GRPC_TUNING_LOOPBACK_SOCKET_H_
