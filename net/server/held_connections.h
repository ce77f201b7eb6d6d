// Connections from addresses of clients that misused the server.

#ifndef HAWSER_NET_SERVER_HELD_CONNECTIONS_H_
#define HAWSER_NET_SERVER_HELD_CONNECTIONS_H_

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "net/server/silent_connections.h"

namespace hawser::net {

// Lets new connections from such an address pass one by one: none for a while
// after each misuse, then one per kSpacing in the order of their arrival, until
// the last misuse is forgiven. What a client gains by connecting again is so
// bounded. Addresses are those of ConnectionLimiter; all IPv6 addresses of a
// 64-bit prefix, of which one client may have any, count as one. Owns the
// descriptors until it returns them. Not thread-safe.
class HeldConnections {
 public:
  using Connection = SilentConnections::Connection;

  // How long the first misuse keeps the address waiting; twice as long for each
  // further one, up to kMaxWait.
  static constexpr absl::Duration kFirstWait = absl::Seconds(2);
  static constexpr absl::Duration kMaxWait = absl::Seconds(30);
  static constexpr absl::Duration kSpacing = absl::Milliseconds(100);
  static constexpr absl::Duration kForgiven = absl::Minutes(1);

  HeldConnections() = default;
  // Closes what is left.
  ~HeldConnections();
  HeldConnections(const HeldConnections&) = delete;
  HeldConnections& operator=(const HeldConnections&) = delete;

  // A connection from `address` was closed for misuse.
  void OnMisuse(std::string_view address, async::MonotonicTime now);

  // Whether `connection` from `address` has to wait; then owns it.
  bool Hold(std::string_view address, const Connection& connection,
            async::MonotonicTime now);

  // How long a poll() may wait, in milliseconds; -1 without connections.
  int PollTimeout(async::MonotonicTime now) const;

  // Removes and returns the connections that may pass now.
  std::vector<Connection> Take(async::MonotonicTime now);

 private:
  struct Address {
    int num_misuses = 0;
    async::MonotonicTime next_pass;
    async::MonotonicTime forgiven;
    std::deque<Connection> waiting;
  };

  absl::flat_hash_map<std::string, Address> addresses_;
};

}  // namespace hawser::net

#endif  // HAWSER_NET_SERVER_HELD_CONNECTIONS_H_
