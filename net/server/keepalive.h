// Keepalive intervals with which both ends detect a dead connection.

#ifndef HAWSER_NET_SERVER_KEEPALIVE_H_
#define HAWSER_NET_SERVER_KEEPALIVE_H_

namespace hawser::rpc {

// Both ends use the same interval, since a server closes connections that send
// pings more often than GrpcLimits::min_ping_interval.
inline constexpr int kKeepaliveTimeMs = 10'000;
inline constexpr int kKeepaliveTimeoutMs = 5'000;

}  // namespace hawser::rpc

#endif  // HAWSER_NET_SERVER_KEEPALIVE_H_
