#include "net/server/listener.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/status_macros.h"
#include "net/server/socket_address.h"
#include "telemetry/log.h"
#include "telemetry/process_memory.h"

namespace hawser::net {
namespace {

// Pause after accept() fails with a transient error, in milliseconds.
constexpr int kPauseMs = 50;
// Time after which a connection that keeps its thread does not keep others.
constexpr absl::Duration kReliefInterval = absl::Milliseconds(200);

// TCP_USER_TIMEOUT in milliseconds, as gRPC would set it for its keepalive
// timeout: a connection whose data is not acknowledged for this long is closed.
constexpr unsigned kUnacknowledgedMs = 5'000;

// First byte of each record of a TLS handshake (RFC 8446, section 5.1).
constexpr unsigned char kTlsHandshake = 0x16;

int OpenReserve() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }

int Accept(int listening_fd, sockaddr_storage* peer) {
  socklen_t size = sizeof(*peer);
  return accept4(listening_fd, reinterpret_cast<sockaddr*>(peer), &size,
                 SOCK_NONBLOCK | SOCK_CLOEXEC);
}

// Whether `fd` is one of the last `reserved` descriptors. The kernel assigns
// the lowest free number.
bool IsReserved(int fd, int reserved) {
  rlimit limit{};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
         limit.rlim_cur != RLIM_INFINITY &&
         static_cast<rlim_t>(fd) + static_cast<rlim_t>(reserved) >=
             limit.rlim_cur;
}

// Of two timeouts of poll(), where -1 is none.
int EarlierTimeout(int a, int b) {
  if (a < 0 || b < 0) return std::max(a, b);
  return std::min(a, b);
}

void SetTcpOptions(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &kUnacknowledgedMs,
             sizeof(kUnacknowledgedMs));
}

// Describes the user at the other end of the Unix socket `fd`; empty if it is
// the user of this process or root.
std::string OtherUserOf(int fd) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return "an unknown user";
  }
  if (peer.uid == geteuid() || peer.uid == 0) return "";
  return absl::StrCat("user ", peer.uid);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Listener>> Listener::Open(
    std::string_view address, ListenerOptions options) {
  ASSIGN_OR_RETURN(std::unique_ptr<ListeningSocket> socket,
                   ListeningSocket::Open(address));
  if (options.prepare_listening != nullptr) {
    for (const int fd : socket->descriptors()) options.prepare_listening(fd);
  }
  const int wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake < 0) {
    return absl::UnavailableError(absl::StrCat(
        "cannot listen at '", absl::string_view(address.data(), address.size()),
        "': ", std::strerror(errno)));
  }
  return std::unique_ptr<Listener>(
      new Listener(std::move(socket), std::move(options), wake));
}

Listener::Listener(std::unique_ptr<ListeningSocket> socket,
                   ListenerOptions options, int wake)
    : options_(std::move(options)),
      socket_address_(socket->address()),
      port_(socket->port()),
      wake_(wake),
      socket_(std::move(socket)),
      reserve_(OpenReserve()),
      connections_({.total = options_.max_connections,
                    .per_address = options_.max_connections_per_address}),
      watch_({.max_calls_per_connection = options_.max_calls_per_connection,
              .memory_watermark_bytes =
                  options_.memory_watermark_bytes == 0
                      ? telemetry::UsableMemoryBytes() / 4 * 3
                      : options_.memory_watermark_bytes,
              .max_message_bytes =
                  static_cast<int64_t>(options_.max_message_bytes)},
             socket_address_, &connections_,
             [this](const ConnectionLimiter::Connection& connection,
                    async::MonotonicTime now) {
               held_.OnMisuse(connection.address, now);
             }) {}

Listener::~Listener() {
  Stop();
  if (reserve_ >= 0) close(reserve_);
  close(wake_);
}

void Listener::AttachTo(
    grpc::ServerBuilder& builder,
    const std::shared_ptr<grpc::ServerCredentials>& credentials) {
  using Type = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  acceptor_ = builder.experimental().AddExternalConnectionAcceptor(
      Type::FROM_FD, credentials);
}

void Listener::Start(OnWatch on_watch) {
  handover_ = std::make_unique<ConnectionHandover>(
      [this](const ConnectionHandover::Connection& connection) {
        grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters
            parameters;
        parameters.listener_fd = connection.listening_fd;
        parameters.fd = connection.fd;
        acceptor_->HandleNewConnection(&parameters);
      });
  thread_ =
      std::thread([this, on_watch = std::move(on_watch)] { Run(on_watch); });
}

void Listener::Stop() {
  async::MutexLock lock(&stop_mutex_);
  if (thread_.joinable()) {
    const uint64_t one = 1;
    // Fails only if a wake-up is already pending.
    (void)!write(wake_, &one, sizeof(one));
    thread_.join();
    handover_->Stop();
  }
  socket_.reset();
}

void Listener::Run(const OnWatch& on_watch) {
  std::vector<pollfd> waiting;
  waiting.push_back({.fd = wake_, .events = POLLIN, .revents = 0});
  for (int fd : socket_->descriptors()) {
    waiting.push_back({.fd = fd, .events = POLLIN, .revents = 0});
  }
  const size_t num_fixed = waiting.size();
  async::MonotonicTime next_relief{};
  while (true) {
    waiting.resize(num_fixed);
    silent_.AppendTo(waiting);
    const auto now = std::chrono::steady_clock::now();
    // Fails only when interrupted.
    (void)poll(waiting.data(), waiting.size(),
               EarlierTimeout(EarlierTimeout(silent_.PollTimeout(now),
                                             held_.PollTimeout(now)),
                              watch_.PollTimeout(now)));
    if (waiting[0].revents != 0) return;
    const auto woken = std::chrono::steady_clock::now();
    watch_.Tick(woken);
    // Not at each event, since the thread needs some time for each connection.
    if (woken >= next_relief) {
      next_relief = async::AddDelay(woken, kReliefInterval);
      handover_->Relieve();
    }
    if (on_watch != nullptr) on_watch(woken);
    Step step = Step::kContinue;
    for (size_t i = 1; i < num_fixed; ++i) {
      if (waiting[i].revents == 0) continue;
      if (AcceptAll(waiting[i].fd) == Step::kPause) step = Step::kPause;
    }
    for (const SilentConnections::Spoken& spoken :
         silent_.Take(std::chrono::steady_clock::now())) {
      PassOn(spoken);
    }
    for (const HeldConnections::Connection& connection :
         held_.Take(std::chrono::steady_clock::now())) {
      PassToGrpc(connection);
    }
    if (step == Step::kPause && poll(waiting.data(), 1, kPauseMs) > 0) return;
  }
}

Listener::Step Listener::AcceptAll(int listening_fd) {
  // At most one backlog, so that one socket does not starve the others.
  for (int i = 0; i < SOMAXCONN; ++i) {
    if (reserve_ < 0) reserve_ = OpenReserve();
    sockaddr_storage peer{};
    const int fd = Accept(listening_fd, &peer);
    if (fd >= 0) {
      Admit({.fd = fd, .listening_fd = listening_fd, .peer = peer});
      continue;
    }
    switch (errno) {
      case EAGAIN:
        return Step::kContinue;
      case EMFILE:
      case ENFILE:
        if (RefuseWithReserve(listening_fd) == Step::kPause) {
          return Step::kPause;
        }
        continue;
      case ENOBUFS:
      case ENOMEM:
      case EBADF:
      case EINVAL:
      case ENOTSOCK:
        return Step::kPause;
      default:
        // The connection failed while it was queued.
        continue;
    }
  }
  return Step::kContinue;
}

Listener::Step Listener::RefuseWithReserve(int listening_fd) {
  if (reserve_ < 0) return Step::kPause;
  close(std::exchange(reserve_, -1));
  sockaddr_storage peer{};
  const int fd = Accept(listening_fd, &peer);
  const bool taken = fd >= 0;
  if (taken) RefuseByLimit(fd);
  reserve_ = OpenReserve();
  return taken ? Step::kContinue : Step::kPause;
}

void Listener::Admit(const SilentConnections::Connection& connection) {
  const int fd = connection.fd;
  const bool is_local = connection.peer.ss_family == AF_UNIX;
  if (is_local) {
    const std::string other_user = OtherUserOf(fd);
    if (!other_user.empty()) {
      RefuseByUser(fd, other_user);
      return;
    }
  }
  const auto now = std::chrono::steady_clock::now();
  const bool admitted = !IsReserved(fd, options_.reserved_descriptors) &&
                        connections_.Add(fd, connection.peer, now);
  if (!admitted) {
    RefuseByLimit(fd);
    return;
  }
  if (is_local) {
    PassOn({.connection = connection, .first = std::nullopt});
  } else {
    silent_.Add(connection, now);
  }
}

void Listener::PassOn(const SilentConnections::Spoken& spoken) {
  const SilentConnections::Connection& connection = spoken.connection;
  if (spoken.first.has_value() &&
      (*spoken.first == kTlsHandshake) != options_.tls) {
    RefuseByProtocol(connection);
    return;
  }
  const auto now = std::chrono::steady_clock::now();
  if (connection.peer.ss_family == AF_UNIX ||
      !held_.Hold(ConnectionLimiter::AddressOf(connection.peer), connection,
                  now)) {
    PassToGrpc(connection);
  }
}

void Listener::PassToGrpc(const SilentConnections::Connection& connection) {
  watch_.OnPassed(KeyOfPeer(connection.peer), std::chrono::steady_clock::now());
  ++num_accepted_;
  if (connection.peer.ss_family != AF_UNIX) SetTcpOptions(connection.fd);
  if (options_.prepare != nullptr) options_.prepare(connection.fd);
  handover_->Add(
      {.fd = connection.fd, .listening_fd = connection.listening_fd});
}

void Listener::Refuse(int fd) {
  // Count before the caller can observe the reset.
  ++num_refused_;
  // Reset rather than close, so that no TIME_WAIT state remains.
  const linger at_once = {.l_onoff = 1, .l_linger = 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  close(fd);
}

void Listener::RefuseByLimit(int fd) {
  Refuse(fd);
  if (!refusal_log_limiter_.ShouldLog(std::chrono::steady_clock::now())) return;
  telemetry::Log(
      telemetry::LogSeverity::kWarning,
      absl::StrCat("refused a connection to ", socket_address_,
                   ": a limit on connections or descriptors is reached "
                   "(docs/rpc/limits.md): ",
                   num_refused(), " refused and ", num_accepted(),
                   " accepted so far, ", connections_.num_known(),
                   " of them open"));
}

void Listener::RefuseByProtocol(
    const SilentConnections::Connection& connection) {
  Refuse(connection.fd);
  if (!protocol_log_limiter_.ShouldLog(std::chrono::steady_clock::now())) {
    return;
  }
  telemetry::Log(
      telemetry::LogSeverity::kWarning,
      absl::StrCat("refused a connection to ", socket_address_, " from ",
                   ToString(connection.peer),
                   options_.tls
                       ? ": this server uses TLS and the client does not"
                       : ": the client uses TLS and this server does not",
                   "; give all processes of a job the same TLS settings "
                   "(SECURITY.md)"));
}

void Listener::RefuseByUser(int fd, std::string_view user) {
  Refuse(fd);
  if (!user_log_limiter_.ShouldLog(std::chrono::steady_clock::now())) return;
  telemetry::Log(
      telemetry::LogSeverity::kWarning,
      absl::StrCat("refused a connection to ", socket_address_, " from ",
                   absl::string_view(user.data(), user.size()),
                   ": a Unix socket serves only processes of the server's "
                   "user, ",
                   geteuid(),
                   ", and root; run the caller as that user, or use a TCP port "
                   "with TLS"));
}

}  // namespace hawser::net
