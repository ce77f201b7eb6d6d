#include "net/testing/raw_http2.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "absl/strings/numbers.h"

namespace hawser::net {
namespace {

constexpr int kPatienceMs = 30'000;

void AppendBigEndian(uint32_t value, int bytes, std::string& to) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) {
    to.push_back(static_cast<char>(value >> shift));
  }
}

// String literal of RFC 7541, with a prefix of seven bits.
void AppendString(std::string_view text, std::string& to) {
  size_t length = text.size();
  if (length < 127) {
    to.push_back(static_cast<char>(length));
  } else {
    to.push_back(127);
    for (length -= 127; length >= 128; length /= 128) {
      to.push_back(static_cast<char>(length % 128 + 128));
    }
    to.push_back(static_cast<char>(length));
  }
  to += text;
}

}  // namespace

std::string HeaderBlock(
    const std::vector<std::pair<std::string, std::string>>& headers) {
  std::string block;
  for (const auto& [name, value] : headers) {
    block.push_back(0);
    AppendString(name, block);
    AppendString(value, block);
  }
  return block;
}

std::vector<std::pair<std::string, std::string>> CallHeaders(
    std::string_view path) {
  return {{":method", "POST"},          {":scheme", "http"},
          {":path", std::string(path)}, {":authority", "localhost"},
          {"te", "trailers"},           {"content-type", "application/grpc"}};
}

std::string GrpcMessage(std::string_view message) {
  std::string bytes(1, '\0');
  AppendBigEndian(static_cast<uint32_t>(message.size()), 4, bytes);
  bytes += message;
  return bytes;
}

RawHttp2::RawHttp2(std::string_view address) {
  int port = 0;
  const absl::string_view digits(address.data() + address.rfind(':') + 1,
                                 address.size() - address.rfind(':') - 1);
  if (!absl::SimpleAtoi(digits, &port)) return;
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(static_cast<uint16_t>(port));
  fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof(to)) != 0) {
    close(std::exchange(fd_, -1));
  }
}

RawHttp2::~RawHttp2() {
  if (fd_ >= 0) close(fd_);
}

bool RawHttp2::SendPreface(bool reads_nothing) {
  // SETTINGS_INITIAL_WINDOW_SIZE = 0.
  const std::string_view settings("\0\x04\0\0\0\0", reads_nothing ? 6 : 0);
  return SendBytes("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") &&
         Send({.type = FrameType::kSettings, .payload = std::string(settings)});
}

bool RawHttp2::SendCall(uint32_t stream, std::string_view path,
                        std::string_view message) {
  return Send({.type = FrameType::kHeaders,
               .flags = kEndHeaders,
               .stream = stream,
               .payload = HeaderBlock(CallHeaders(path))}) &&
         Send({.type = FrameType::kData,
               .flags = kEndStream,
               .stream = stream,
               .payload = GrpcMessage(message)});
}

bool RawHttp2::Send(const Frame& frame) {
  std::string bytes;
  AppendBigEndian(static_cast<uint32_t>(frame.payload.size()), 3, bytes);
  bytes.push_back(static_cast<char>(frame.type));
  bytes.push_back(static_cast<char>(frame.flags));
  AppendBigEndian(frame.stream, 4, bytes);
  return SendBytes(bytes + frame.payload);
}

bool RawHttp2::SendBytes(std::string_view bytes) {
  while (!bytes.empty()) {
    // The server may close while the socket is full, and never make room.
    pollfd writable = {.fd = fd_, .events = POLLOUT | POLLRDHUP, .revents = 0};
    if (poll(&writable, 1, kPatienceMs) != 1 ||
        (writable.revents & POLLRDHUP) != 0) {
      return false;
    }
    const ssize_t sent =
        send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

bool RawHttp2::ReadExactly(size_t count, std::string& bytes) {
  bytes.resize(count);
  for (size_t have = 0; have < count;) {
    pollfd readable = {.fd = fd_, .events = POLLIN, .revents = 0};
    if (poll(&readable, 1, kPatienceMs) != 1) return false;
    const ssize_t got = recv(fd_, bytes.data() + have, count - have, 0);
    if (got <= 0) return false;
    have += static_cast<size_t>(got);
  }
  return true;
}

bool RawHttp2::Await(FrameType type, Frame& frame) {
  std::string head;
  while (ReadExactly(9, head)) {
    const auto byte = [&](int i) { return static_cast<uint8_t>(head[i]); };
    frame.type = static_cast<FrameType>(byte(3));
    frame.flags = byte(4);
    frame.stream = static_cast<uint32_t>(byte(5)) << 24 | byte(6) << 16 |
                   byte(7) << 8 | byte(8);
    const size_t length = byte(0) << 16 | byte(1) << 8 | byte(2);
    if (!ReadExactly(length, frame.payload)) return false;
    if (frame.type == type) return true;
  }
  return false;
}

bool RawHttp2::AwaitClosed() {
  while (true) {
    pollfd readable = {.fd = fd_, .events = POLLIN, .revents = 0};
    if (poll(&readable, 1, kPatienceMs) != 1) return false;
    char bytes[4096];
    if (recv(fd_, bytes, sizeof(bytes), 0) <= 0) return true;
  }
}

}  // namespace hawser::net
