// Congestion control of connections that do not leave the machine.

#ifndef HAWSER_RPC_GRPC_LOOPBACK_SOCKET_H_
#define HAWSER_RPC_GRPC_LOOPBACK_SOCKET_H_

#include "grpcpp/support/channel_arguments.h"

namespace hawser::rpc {

// Lets TCP connections over loopback run under Reno, whatever the system's
// default: BBR paces what it sends, which is of no use where no packet is ever
// lost. Reno is in every Linux kernel and may be chosen without privileges.
// Where it cannot be chosen, and for Unix sockets, the connection stays as it
// is.

// For channels to an address that is known to be loopback.
void UseLoopbackCongestionControl(::grpc::ChannelArguments& arguments);

// For accepted connections: those from elsewhere are left alone.
void UseLoopbackCongestionControl(int connection_fd);

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_GRPC_LOOPBACK_SOCKET_H_
