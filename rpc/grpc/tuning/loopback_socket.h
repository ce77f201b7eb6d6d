// Sockets of connections that do not leave the machine.

#ifndef HAWSER_RPC_GRPC_TUNING_LOOPBACK_SOCKET_H_
#define HAWSER_RPC_GRPC_TUNING_LOOPBACK_SOCKET_H_

#include "grpcpp/support/channel_arguments.h"

namespace hawser::rpc {

// Suits TCP connections over loopback to memory, which is all they cross:
//
//   Reno, whatever the system's default: BBR paces what it sends, which is of
//     no use where no packet is ever lost. Reno is in every Linux kernel and
//     may be chosen without privileges.
//   kLoopbackReceiveBuffer: what waits in buffers that grow to the system's
//     limit has left the caches when it is read.
//
// What the system does not allow stays as it is, as do Unix sockets.

// In bytes; the kernel doubles it for its own needs. Where net.core.rmem_max is
// less, buffers grow as the system lets them.
inline constexpr int kLoopbackReceiveBuffer = 768 << 10;

// For channels to an address that is known to be loopback.
void TuneForLoopback(::grpc::ChannelArguments& arguments);

// For accepted connections: those from elsewhere are left alone.
void TuneIfLoopback(int connection_fd);

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_GRPC_TUNING_LOOPBACK_SOCKET_H_
