#include "net/server/silent_connections.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace hawser::net {

SilentConnections::~SilentConnections() {
  for (const Waiting& waiting : waiting_) close(waiting.connection.fd);
}

void SilentConnections::Add(const Connection& connection,
                            async::MonotonicTime now) {
  waiting_.push_back({connection, async::AddDelay(now, kMaxSilence)});
}

void SilentConnections::AppendTo(std::vector<pollfd>& waiting) const {
  for (const Waiting& silent : waiting_) {
    waiting.push_back(
        {.fd = silent.connection.fd, .events = POLLIN, .revents = 0});
  }
}

int SilentConnections::PollTimeout(async::MonotonicTime now) const {
  if (waiting_.empty()) return -1;
  // They were added in the order of time.
  const absl::Duration left = std::max(
      async::TimeBetween(now, waiting_.front().until), absl::ZeroDuration());
  return static_cast<int>(
      absl::ToInt64Milliseconds(absl::Ceil(left, absl::Milliseconds(1))));
}

std::vector<SilentConnections::Spoken> SilentConnections::Take(
    async::MonotonicTime now) {
  std::vector<Spoken> taken;
  std::erase_if(waiting_, [&](const Waiting& waiting) {
    unsigned char first = 0;
    const ssize_t received = recv(waiting.connection.fd, &first, sizeof(first),
                                  MSG_PEEK | MSG_DONTWAIT);
    if (received == 1) {
      taken.push_back({waiting.connection, first});
      return true;
    }
    const bool silent = received < 0 && (errno == EAGAIN || errno == EINTR);
    if (silent && now < waiting.until) return false;
    taken.push_back({waiting.connection, std::nullopt});
    return true;
  });
  return taken;
}

}  // namespace hawser::net
