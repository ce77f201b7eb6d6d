// Keepalive intervals by which both ends detect a dead connection.

#ifndef HAWSER_NET_GRPC_KEEPALIVE_H_
#define HAWSER_NET_GRPC_KEEPALIVE_H_

namespace hawser::net {

// Both ends use the same interval, since a server closes connections that send
// pings more often than ServerSettings::min_ping_interval.
inline constexpr int kKeepaliveTimeMs = 10'000;
inline constexpr int kKeepaliveTimeoutMs = 5'000;

}  // namespace hawser::net

#endif  // HAWSER_NET_GRPC_KEEPALIVE_H_
