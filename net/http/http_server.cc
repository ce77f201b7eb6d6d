#include "net/http/http_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "fs/unique_fd.h"
#include "net/server/listening_socket.h"

namespace hawser::net {
namespace {

using Clock = std::chrono::steady_clock;

// Of the request line and headers of a connection, and of those of its reply.
constexpr size_t kConnectionBytes = size_t{16} << 10;
// Between two bytes of a client.
constexpr unsigned kSilenceSeconds = 5;

bool IsLoopback(int fd) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return false;
  }
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    return ntohl(v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
  }
  if (address.ss_family != AF_INET6) return false;
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr) ||
         (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr) &&
          v6.sin6_addr.s6_addr[12] == IN_LOOPBACKNET);
}

// Whether the header Host names an IP address or "localhost", with or without a
// port.
bool IsAddressOrLocalhost(std::string_view host) {
  in6_addr parsed;
  if (host.starts_with('[')) {
    const size_t end = host.find(']');
    if (end == std::string_view::npos) return false;
    return inet_pton(AF_INET6, std::string(host.substr(1, end - 1)).c_str(),
                     &parsed) == 1;
  }
  const std::string name(host.substr(0, host.find(':')));
  return absl::EqualsIgnoreCase(name, "localhost") ||
         inet_pton(AF_INET, name.c_str(), &parsed) == 1;
}

struct Hosts {
  int count = 0;
  std::string last;
};

MHD_Result CollectHost(void* hosts, MHD_ValueKind /*kind*/, const char* key,
                       const char* value) {
  if (absl::EqualsIgnoreCase(key, MHD_HTTP_HEADER_HOST)) {
    auto& found = *static_cast<Hosts*>(hosts);
    ++found.count;
    found.last = value != nullptr ? value : "";
  }
  return MHD_YES;
}

HttpPage Error(int status, std::string_view text) {
  return {.status = status, .body = absl::StrCat(std::string(text), "\n")};
}

MHD_Result Reply(MHD_Connection* connection, const HttpPage& page) {
  MHD_Response* const response = MHD_create_response_from_buffer(
      page.body.size(),
      const_cast<char*>(page.body.data()),  // NOLINT: it is copied.
      MHD_RESPMEM_MUST_COPY);
  if (response == nullptr) return MHD_NO;
  const std::pair<const char*, const char*> headers[] = {
      {MHD_HTTP_HEADER_CONTENT_TYPE, page.content_type.c_str()},
      {MHD_HTTP_HEADER_CONNECTION, "close"},
      {MHD_HTTP_HEADER_CACHE_CONTROL, "no-store"},
      {"X-Content-Type-Options", "nosniff"}};
  for (const auto& [name, value] : headers) {
    MHD_add_response_header(response, name, value);
  }
  if (page.status == MHD_HTTP_METHOD_NOT_ALLOWED) {
    MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
  }
  const MHD_Result result = MHD_queue_response(
      connection, static_cast<unsigned>(page.status), response);
  MHD_destroy_response(response);
  return result;
}

}  // namespace

class HttpServer::Impl final : public HttpServer {
 public:
  Impl(HttpServerOptions options, std::unique_ptr<ListeningSocket> socket)
      : options_(std::move(options)),
        socket_(std::move(socket)),
        address_(socket_->address()),
        wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  ~Impl() override {
    if (thread_.joinable()) {
      const uint64_t one = 1;
      // An eventfd takes a small number at once.
      [[maybe_unused]] const ssize_t written =
          write(wake_.get(), &one, sizeof(one));
      thread_.join();
    }
    for (MHD_Daemon* daemon : daemons_) MHD_stop_daemon(daemon);
  }

  const std::string& address() const override { return address_; }

  absl::Status Start() {
    if (!wake_.valid()) {
      return absl::UnavailableError(
          absl::StrCat("eventfd: ", std::strerror(errno)));
    }
    for (const int fd : socket_->descriptors()) {
      if (!IsLoopback(fd)) loopback_ = false;
    }
    if (!loopback_ && !options_.allow_network) {
      return absl::FailedPreconditionError(absl::StrCat(
          "refusing to serve metrics on ", address_,
          ": it is not loopback, and everyone who can connect could read them; "
          "permit it explicitly if every machine that can connect is trusted"));
    }
    for (const int fd : socket_->descriptors()) {
      RETURN_IF_ERROR(StartDaemon(fd));
    }
    thread_ = std::thread([this] { Run(); });
    return absl::OkStatus();
  }

 private:
  absl::Status StartDaemon(int fd) {
    // The daemon closes its socket.
    const int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (own < 0) {
      return absl::UnavailableError(absl::StrCat("cannot listen on ", address_,
                                                 ": ", std::strerror(errno)));
    }
    MHD_Daemon* const daemon = MHD_start_daemon(
        MHD_USE_EPOLL, /*port=*/0, nullptr, nullptr, &Impl::Answer, this,
        MHD_OPTION_LISTEN_SOCKET, own, MHD_OPTION_CONNECTION_LIMIT,
        static_cast<unsigned>(options_.max_connections),
        MHD_OPTION_CONNECTION_TIMEOUT, kSilenceSeconds,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, kConnectionBytes,
        MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_NOTIFY_CONNECTION,
        &Impl::NoteConnection, this, MHD_OPTION_END);
    if (daemon == nullptr) {
      close(own);
      return absl::UnavailableError(
          absl::StrCat("cannot serve HTTP on ", address_));
    }
    daemons_.push_back(daemon);
    return absl::OkStatus();
  }

  void Run() {
    std::vector<pollfd> waiting = {{wake_.get(), POLLIN, 0}};
    for (MHD_Daemon* daemon : daemons_) {
      waiting.push_back(
          {MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd,
           POLLIN, 0});
    }
    while (true) {
      poll(waiting.data(), waiting.size(), PollTimeout());
      if (waiting[0].revents != 0) return;
      has_closed_ = false;
      for (MHD_Daemon* daemon : daemons_) MHD_run(daemon);
      EndOverdue();
    }
  }

  // In milliseconds; -1 without connections.
  int PollTimeout() const {
    // A daemon at its limit accepts again in the run after the one that closed
    // a connection.
    if (has_closed_) return 0;
    std::optional<int64_t> timeout;
    const auto at_most = [&](int64_t milliseconds) {
      timeout = std::min(timeout.value_or(milliseconds), milliseconds);
    };
    for (MHD_Daemon* daemon : daemons_) {
      MHD_UNSIGNED_LONG_LONG milliseconds = 0;
      if (MHD_get_timeout(daemon, &milliseconds) == MHD_YES) {
        at_most(static_cast<int64_t>(milliseconds));
      }
    }
    for (const auto& [fd, end] : ends_) {
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
      at_most(std::max<int64_t>(left.count(), 0));
    }
    return static_cast<int>(timeout.value_or(-1));
  }

  // The daemon notices it, and closes the connection.
  void EndOverdue() {
    const Clock::time_point now = Clock::now();
    for (auto& [fd, end] : ends_) {
      if (end > now) continue;
      shutdown(fd, SHUT_RDWR);
      // Until the daemon has noticed.
      end = now + std::chrono::seconds(1);
    }
  }

  static void NoteConnection(void* server, MHD_Connection* connection,
                             void** /*context*/,
                             MHD_ConnectionNotificationCode code) {
    auto& self = *static_cast<Impl*>(server);
    const int fd =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)
            ->connect_fd;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
      self.ends_[fd] = Clock::now() + absl::ToChronoMilliseconds(
                                          self.options_.max_connection_time);
    } else {
      self.ends_.erase(fd);
      self.has_closed_ = true;
    }
  }

  static MHD_Result Answer(void* server, MHD_Connection* connection,
                           const char* url, const char* method,
                           const char* /*version*/, const char* /*upload*/,
                           size_t* /*upload_size*/, void** /*context*/) {
    return Reply(connection,
                 static_cast<Impl*>(server)->PageOf(connection, url, method));
  }

  HttpPage PageOf(MHD_Connection* connection, std::string_view url,
                  std::string_view method) const {
    Hosts hosts;
    MHD_get_connection_values(connection, MHD_HEADER_KIND, &CollectHost,
                              &hosts);
    if (hosts.count != 1) {
      return Error(MHD_HTTP_BAD_REQUEST, "one header Host is needed");
    }
    if (loopback_ && !IsAddressOrLocalhost(hosts.last)) {
      return Error(MHD_HTTP_FORBIDDEN,
                   "the header Host must be an IP address or localhost");
    }
    if (method != MHD_HTTP_METHOD_GET && method != MHD_HTTP_METHOD_HEAD) {
      return Error(MHD_HTTP_METHOD_NOT_ALLOWED, "GET and HEAD are served");
    }
    const auto page = options_.pages.find(std::string(url));
    if (page == options_.pages.end()) {
      return Error(MHD_HTTP_NOT_FOUND, "there is no such page");
    }
    return page->second();
  }

  const HttpServerOptions options_;
  const std::unique_ptr<ListeningSocket> socket_;
  const std::string address_;
  const fs::UniqueFd wake_;
  bool loopback_ = true;
  std::vector<MHD_Daemon*> daemons_;

  // Used by the thread alone while it runs.

  // By the descriptor of a connection: when it is closed.
  std::map<int, Clock::time_point> ends_;
  bool has_closed_ = false;

  std::thread thread_;
};

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(
    HttpServerOptions options) {
  if (absl::StartsWith(options.address, "unix:")) {
    return absl::InvalidArgumentError(
        absl::StrCat("metrics are served on HOST:PORT, not ", options.address));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<ListeningSocket> socket,
                   ListeningSocket::Open(options.address));
  auto server = std::make_unique<Impl>(std::move(options), std::move(socket));
  RETURN_IF_ERROR(server->Start());
  return server;
}

}  // namespace hawser::net
