// The time after which a store client gives up a silent connection.

#ifndef HAWSER_STORE_UNACKNOWLEDGED_LIMIT_H_
#define HAWSER_STORE_UNACKNOWLEDGED_LIMIT_H_

namespace hawser::store::internal {

// A store client closes its connection, and opens another, if the server's
// machine does not acknowledge sent data for this long (TCP_USER_TIMEOUT in
// tcp(7)). The machine acknowledges in place of a busy process.
//
// TCP doubles its pauses between retransmissions. In a network that fails again
// and again, for less than a second each time, all retransmissions of several
// seconds may be lost; a worker that renews its lease has 3 s.
inline constexpr int kUnacknowledgedLimitMs = 1'000;

}  // namespace hawser::store::internal

#endif  // HAWSER_STORE_UNACKNOWLEDGED_LIMIT_H_
