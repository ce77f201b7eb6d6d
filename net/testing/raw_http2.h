// Raw HTTP/2 client for tests with malformed traffic.

#ifndef HAWSER_NET_TESTING_RAW_HTTP2_H_
#define HAWSER_NET_TESTING_RAW_HTTP2_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hawser::net {

// Frame types of RFC 9113.
enum class FrameType : uint8_t {
  kData = 0,
  kHeaders = 1,
  kRstStream = 3,
  kSettings = 4,
  kPing = 6,
  kGoAway = 7,
  kContinuation = 9,
};

struct Frame {
  FrameType type{};
  uint8_t flags = 0;
  uint32_t stream = 0;
  std::string payload = {};
};

// Flags of DATA, HEADERS and CONTINUATION.
inline constexpr uint8_t kEndStream = 0x1;
inline constexpr uint8_t kEndHeaders = 0x4;

// A header block of literals, without compression.
std::string HeaderBlock(
    const std::vector<std::pair<std::string, std::string>>& headers);

// The headers of a gRPC call of `path`.
std::vector<std::pair<std::string, std::string>> CallHeaders(
    std::string_view path);

// A gRPC message, as in DATA frames.
std::string GrpcMessage(std::string_view message);

// One TCP connection to "host:port" of this machine. All calls time out after
// thirty seconds.
class RawHttp2 {
 public:
  explicit RawHttp2(std::string_view address);
  ~RawHttp2();
  RawHttp2(const RawHttp2&) = delete;
  RawHttp2& operator=(const RawHttp2&) = delete;

  bool connected() const { return fd_ >= 0; }

  // Sends the preface and settings, which start each connection. With
  // `reads_nothing`, the server may send no DATA: the initial window is 0.
  bool SendPreface(bool reads_nothing = false);
  // Returns false once the server has closed.
  bool Send(const Frame& frame);
  // Sends a call with its only message, in one frame.
  bool SendCall(uint32_t stream, std::string_view path,
                std::string_view message);
  bool SendBytes(std::string_view bytes);

  // Waits for a frame of `type`. Returns false if the server closes, or on
  // timeout.
  bool Await(FrameType type, Frame& frame);
  // Waits until the server closes the connection; returns false on timeout.
  bool AwaitClosed();

 private:
  bool ReadExactly(size_t count, std::string& bytes);

  int fd_ = -1;
};

}  // namespace hawser::net

#endif  // HAWSER_NET_TESTING_RAW_HTTP2_H_
