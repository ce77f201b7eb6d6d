#include "net/auth/server_diagnosis.h"

#include <openssl/bio.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "async/clock.h"
#include "fs/unique_fd.h"
#include "net/endpoints.h"

namespace hawser::net {
namespace {

// First bytes of a record of TLS (RFC 8446, section 5.1).
constexpr unsigned char kTlsAlert = 0x15;
constexpr unsigned char kTlsHandshake = 0x16;
constexpr unsigned char kTlsMajorVersion = 0x03;

// A frame of HTTP/2 begins with three bytes of length, and its type (RFC 9113,
// section 4.1). A server sends SETTINGS first.
constexpr size_t kFrameHeaderBytes = 9;
constexpr size_t kFrameTypeOffset = 3;
constexpr char kSettingsFrame = 0x04;

// What a client of HTTP/2 sends first, followed by an empty SETTINGS frame.
constexpr std::string_view kHttp2Preface(
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0", 33);

constexpr size_t kMaxShownBytes = 40;

enum class Protocol { kSilent, kGrpc, kTls, kOther };

Protocol ProtocolOf(std::string_view reply) {
  if (reply.empty()) return Protocol::kSilent;
  const auto first = static_cast<unsigned char>(reply[0]);
  if (first == kTlsAlert || first == kTlsHandshake) {
    return reply.size() == 1 || reply[1] == kTlsMajorVersion ? Protocol::kTls
                                                             : Protocol::kOther;
  }
  const bool is_grpc = reply.size() >= kFrameHeaderBytes &&
                       reply[kFrameTypeOffset] == kSettingsFrame;
  return is_grpc ? Protocol::kGrpc : Protocol::kOther;
}

// What a client of TLS sends first; empty if OpenSSL fails.
std::string ClientHello() {
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(
      SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
  if (context == nullptr) return "";
  const std::unique_ptr<SSL, decltype(&SSL_free)> ssl(SSL_new(context.get()),
                                                      &SSL_free);
  if (ssl == nullptr) return "";
  BIO* const in = BIO_new(BIO_s_mem());
  BIO* const out = BIO_new(BIO_s_mem());
  // Takes both over.
  SSL_set_bio(ssl.get(), in, out);
  SSL_set_connect_state(ssl.get());
  // Wants the reply, after it has written its message.
  (void)SSL_do_handshake(ssl.get());
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(out, &bytes);
  return size > 0 ? std::string(bytes, static_cast<size_t>(size)) : "";
}

// Waits until `events` occur on `fd`. False at `deadline`.
bool Await(int fd, short events, async::MonotonicTime deadline) {
  pollfd entry = {.fd = fd, .events = events, .revents = 0};
  while (true) {
    // Looks once even if this thread was late.
    const absl::Duration left =
        std::max(async::TimeBetween(std::chrono::steady_clock::now(), deadline),
                 absl::ZeroDuration());
    const int ready = poll(&entry, 1,
                           static_cast<int>(absl::ToInt64Milliseconds(
                               absl::Ceil(left, absl::Milliseconds(1)))));
    if (ready > 0) return true;
    if (left == absl::ZeroDuration()) return false;
    if (ready < 0 && errno != EINTR) return false;
  }
}

struct Connection {
  fs::UniqueFd fd;
  // errno; 0 if it is open. ETIMEDOUT at the deadline.
  int error = 0;
};

Connection ConnectTo(const Endpoint& endpoint, async::MonotonicTime deadline) {
  const Connecting connecting = StartToConnect(endpoint);
  Connection made{.fd = fs::UniqueFd(connecting.fd), .error = connecting.error};
  if (made.error != EINPROGRESS) return made;
  if (!Await(made.fd.get(), POLLOUT, deadline)) {
    made.error = ETIMEDOUT;
    return made;
  }
  socklen_t size = sizeof(made.error);
  getsockopt(made.fd.get(), SOL_SOCKET, SO_ERROR, &made.error, &size);
  return made;
}

// Connects to the first of `endpoints` that accepts. If none does, `error` is
// that of the last one; ENOENT if there is none.
Connection ConnectToAny(const std::vector<Endpoint>& endpoints,
                        async::MonotonicTime deadline) {
  Connection last{.fd = {}, .error = ENOENT};
  for (const Endpoint& endpoint : endpoints) {
    last = ConnectTo(endpoint, deadline);
    if (last.error == 0) break;
  }
  return last;
}

// Sends `message` and returns the first bytes of the reply; empty if there are
// none by `deadline`, or the connection is closed.
std::string Ask(const Connection& connection, std::string_view message,
                async::MonotonicTime deadline) {
  // A new connection has room for these few bytes.
  if (send(connection.fd.get(), message.data(), message.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(message.size())) {
    return "";
  }
  std::string reply;
  std::array<char, 256> buffer{};
  while (reply.size() < kFrameHeaderBytes &&
         Await(connection.fd.get(), POLLIN, deadline)) {
    const ssize_t received =
        recv(connection.fd.get(), buffer.data(), buffer.size(), 0);
    if (received <= 0) break;
    reply.append(buffer.data(), static_cast<size_t>(received));
  }
  return reply;
}

// The beginning of `reply` as one printable line.
std::string Shown(std::string_view reply) {
  reply =
      reply.substr(0, std::min(kMaxShownBytes, reply.find_first_of("\r\n")));
  return absl::CHexEscape(absl::string_view(reply.data(), reply.size()));
}

absl::Status Mismatch(const std::string& address, bool tls) {
  return absl::UnauthenticatedError(absl::StrCat(
      "the server at ", address,
      tls ? " does not use TLS, and this end does"
          : " uses TLS, and this end "
            "does not",
      ": give all processes of a job the same TLS settings (SECURITY.md)"));
}

}  // namespace

absl::Status DiagnoseServer(const std::string& address, bool tls,
                            absl::Duration timeout) {
  const std::vector<Endpoint> endpoints = EndpointsOf(address);
  const async::MonotonicTime end =
      async::AddDelay(std::chrono::steady_clock::now(), timeout);
  // Half of the time for each question.
  const async::MonotonicTime half =
      async::AddDelay(std::chrono::steady_clock::now(), timeout / 2);
  const std::string hello = ClientHello();
  for (const auto& [question, deadline] :
       {std::pair<std::string_view, async::MonotonicTime>(kHttp2Preface, half),
        std::pair<std::string_view, async::MonotonicTime>(hello, end)}) {
    const Connection connection = ConnectToAny(endpoints, deadline);
    switch (connection.error) {
      case 0:
        break;
      case EMFILE:
      case ENFILE:
        return absl::ResourceExhaustedError(absl::StrCat(
            "cannot connect to ", address, ": ",
            std::strerror(connection.error),
            "; raise the limit on open files (ulimit -n, LimitNOFILE=)"));
      case ENETUNREACH:
      case EHOSTUNREACH:
        return absl::FailedPreconditionError(absl::StrCat(
            "cannot connect to ", address, ": ",
            std::strerror(connection.error),
            "; check the address and the network of this machine"));
      default:
        return absl::OkStatus();
    }
    const std::string reply = Ask(connection, question, deadline);
    switch (ProtocolOf(reply)) {
      case Protocol::kSilent:
        continue;
      case Protocol::kGrpc:
        return tls ? Mismatch(address, tls) : absl::OkStatus();
      case Protocol::kTls:
        return tls ? absl::OkStatus() : Mismatch(address, tls);
      case Protocol::kOther:
        return absl::FailedPreconditionError(
            absl::StrCat("the server at ", address,
                         " does not speak gRPC: its reply begins with \"",
                         Shown(reply), "\"; check the address"));
    }
  }
  return absl::OkStatus();
}

}  // namespace hawser::net
