// Text of a socket's address.

#ifndef HAWSER_NET_SERVER_SOCKET_ADDRESS_H_
#define HAWSER_NET_SERVER_SOCKET_ADDRESS_H_

#include <sys/socket.h>

#include <string>

namespace hawser::net {

// "10.0.0.5:4242", "[fd00::5]:4242"; "a Unix socket" for others.
std::string ToString(const sockaddr_storage& address);

}  // namespace hawser::net

#endif  // HAWSER_NET_SERVER_SOCKET_ADDRESS_H_
