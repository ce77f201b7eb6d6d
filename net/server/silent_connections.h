// Accepted connections whose client has sent nothing yet.

#ifndef HAWSER_NET_SERVER_SILENT_CONNECTIONS_H_
#define HAWSER_NET_SERVER_SILENT_CONNECTIONS_H_

#include <poll.h>
#include <sys/socket.h>

#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "async/clock.h"

namespace hawser::net {

// Waits for the first byte of each connection, which tells its protocol, and
// leaves the byte in the socket. Owns the descriptors until it returns them.
// Not thread-safe.
class SilentConnections {
 public:
  struct Connection {
    int fd = -1;
    // The listening socket that it came from.
    int listening_fd = -1;
    sockaddr_storage peer = {};
  };

  struct Spoken {
    Connection connection;
    // The first byte. Empty if the client closed the connection, or stayed
    // silent for longer than kMaxSilence.
    std::optional<unsigned char> first;
  };

  // A client of gRPC sends at once.
  static constexpr absl::Duration kMaxSilence = absl::Seconds(1);

  SilentConnections() = default;
  // Closes what is left.
  ~SilentConnections();
  SilentConnections(const SilentConnections&) = delete;
  SilentConnections& operator=(const SilentConnections&) = delete;

  // `connection` is non-blocking.
  void Add(const Connection& connection, async::MonotonicTime now);

  // Adds an entry for each connection to `waiting`.
  void AppendTo(std::vector<pollfd>& waiting) const;

  // How long a poll() may wait, in milliseconds; -1 without connections.
  int PollTimeout(async::MonotonicTime now) const;

  // Removes and returns the connections that need not wait any longer.
  std::vector<Spoken> Take(async::MonotonicTime now);

 private:
  struct Waiting {
    Connection connection;
    async::MonotonicTime until;
  };

  std::vector<Waiting> waiting_;
};

}  // namespace hawser::net

#endif  // HAWSER_NET_SERVER_SILENT_CONNECTIONS_H_
