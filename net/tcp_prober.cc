#include "net/tcp_prober.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "async/clock.h"
#include "fs/unique_fd.h"
#include "net/endpoints.h"

namespace hawser::net {
// One probe. Used by the prober's thread only.
class TcpProber::Attempt {
 public:
  Attempt(std::string address, absl::Duration timeout, Done done)
      : address_(std::move(address)),
        deadline_(async::AddDelay(std::chrono::steady_clock::now(), timeout)),
        done_(std::move(done)) {}

  void Begin() {
    endpoints_ = EndpointsOf(address_);
    error_ = "the host has no address";
    ConnectNext();
  }

  bool ended() const { return done_ == nullptr; }
  // -1 once the attempt has ended.
  int fd() const { return fd_.get(); }
  async::MonotonicTime deadline() const { return deadline_; }

  // The socket is ready.
  void OnReady() {
    int error = 0;
    socklen_t size = sizeof(error);
    getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error == 0) {
      End(absl::OkStatus());
    } else {
      error_ = std::strerror(error);
      ConnectNext();
    }
  }

  void OnDeadline() {
    End(absl::DeadlineExceededError(
        absl::StrCat(address_, " does not reply in time")));
  }

 private:
  void ConnectNext() {
    while (next_ < endpoints_.size()) {
      const Endpoint& endpoint = endpoints_[next_++];
      const Connecting connecting = StartToConnect(endpoint);
      fd_ = fs::UniqueFd(connecting.fd);
      // Without a free descriptor nothing is known of the peer. EAGAIN: the
      // queue of a Unix socket is full, so somebody listens.
      if (!fd_.valid() || connecting.error == 0 || connecting.error == EAGAIN) {
        End(absl::OkStatus());
        return;
      }
      if (connecting.error == EINPROGRESS) return;
      error_ = std::strerror(connecting.error);
    }
    End(absl::UnavailableError(
        absl::StrCat("cannot connect to ", address_, ": ", error_)));
  }

  void End(absl::Status status) {
    fd_.Reset();
    Done done = std::exchange(done_, nullptr);
    std::move(done)(std::move(status));
  }

  const std::string address_;
  const async::MonotonicTime deadline_;
  Done done_;
  std::vector<Endpoint> endpoints_;
  size_t next_ = 0;
  fs::UniqueFd fd_;
  std::string error_;
};

TcpProber::TcpProber() : wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

TcpProber::~TcpProber() {
  Stop();
  if (wake_ >= 0) close(wake_);
}

void TcpProber::Stop() {
  std::thread thread;
  {
    async::MutexLock lock(&mutex_);
    stopped_ = true;
    thread.swap(thread_);
  }
  const uint64_t one = 1;
  // Fails only if a wake-up is already pending.
  (void)!write(wake_, &one, sizeof(one));
  if (thread.joinable()) thread.join();
}

void TcpProber::Probe(std::string address, absl::Duration timeout, Done done) {
  auto attempt =
      std::make_unique<Attempt>(std::move(address), timeout, std::move(done));
  async::MutexLock lock(&mutex_);
  if (stopped_) return;
  added_.push_back(std::move(attempt));
  if (!thread_.joinable()) {
    thread_ = std::thread([this] { Run(); });
  }
  const uint64_t one = 1;
  (void)!write(wake_, &one, sizeof(one));
}

void TcpProber::Run() {
  pthread_setname_np(pthread_self(), "prober");
  std::vector<std::unique_ptr<Attempt>> attempts;
  while (true) {
    std::vector<std::unique_ptr<Attempt>> added;
    {
      async::MutexLock lock(&mutex_);
      added.swap(added_);
      if (stopped_) return;
    }
    for (std::unique_ptr<Attempt>& attempt : added) {
      attempt->Begin();
      attempts.push_back(std::move(attempt));
    }
    std::erase_if(attempts,
                  [](const auto& attempt) { return attempt->ended(); });
    std::vector<pollfd> waiting = {
        {.fd = wake_, .events = POLLIN, .revents = 0}};
    async::MonotonicTime until = async::kNever;
    for (const auto& attempt : attempts) {
      waiting.push_back({.fd = attempt->fd(), .events = POLLOUT, .revents = 0});
      until = std::min(until, attempt->deadline());
    }
    int timeout = -1;
    if (until != async::kNever) {
      const absl::Duration left =
          std::max(async::TimeBetween(std::chrono::steady_clock::now(), until),
                   absl::ZeroDuration());
      timeout = static_cast<int>(
          absl::ToInt64Milliseconds(absl::Ceil(left, absl::Milliseconds(1))));
    }
    // Fails only when interrupted.
    (void)poll(waiting.data(), waiting.size(), timeout);
    uint64_t count = 0;
    (void)!read(wake_, &count, sizeof(count));
    // A socket that is ready counts, even if this thread was late.
    const auto now = std::chrono::steady_clock::now();
    for (size_t i = 0; i < attempts.size(); ++i) {
      if (waiting[i + 1].revents != 0) {
        attempts[i]->OnReady();
      } else if (attempts[i]->deadline() <= now) {
        attempts[i]->OnDeadline();
      }
    }
  }
}

}  // namespace hawser::net
