// Detection of connections that make gRPC hold memory which it does not limit.

#ifndef HAWSER_NET_SERVER_MISUSE_DETECTOR_H_
#define HAWSER_NET_SERVER_MISUSE_DETECTOR_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "net/server/open_calls.h"

namespace hawser::net {

// gRPC 1.51 limits the calls of a connection only once its client has
// acknowledged the limit, and keeps up to 160 bytes for each byte of a call's
// headers, before it compares them with any limit.
//
// Not thread-safe.
class MisuseDetector {
 public:
  struct Limits {
    int max_calls_per_connection = 0;
    // Memory of the process above which it should not grow by what clients
    // send.
    size_t memory_watermark_bytes = 0;
    // The longest message that the server takes.
    int64_t max_message_bytes = 0;
  };
  struct Use {
    ConnectionCalls calls;
    // Bytes received so far.
    int64_t bytes = 0;
  };
  struct Finding {
    ConnectionKey connection;
    // For the log: "it has 600 calls open, and max_calls_per_connection is
    // 256".
    std::string reason;
  };

  // Calls that a connection may be seen to have open, as a multiple of
  // max_calls_per_connection. gRPC holds clients to the limit until they get
  // their replies, and counts a call until the server has noticed that its
  // reply was sent. A client that starts a call with each reply may have as
  // many of the latter as of the former.
  static constexpr int64_t kSeenCalls = 2;
  // Growth of the process between two checks that is worth a closed connection.
  static constexpr size_t kGrowthBytes = size_t{16} << 20;
  // Messages cost less than this number of bytes for each that is received.
  static constexpr size_t kAmplification = 8;
  // The part of the watermark above which the process should not grow by more
  // than kAmplification. gRPC copies headers when their connection ends, so
  // that the process grows to twice as much.
  static constexpr size_t kAmplifiedFraction = 8;
  // Messages of workers have up to 2 MiB, longer ones come in fragments.
  static constexpr int64_t kBytesPerMessage = int64_t{2} << 20;
  // Bytes that complete no messages, for which a connection may be closed.
  static constexpr int64_t kUnexplainedBytes = 2 * kBytesPerMessage;
  // Same, of a connection that has completed no message at all, if the growth
  // is far more than what was received: clients begin with short calls.
  static constexpr int64_t kUnexplainedFirstBytes = int64_t{1} << 20;

  // Bytes beyond those of the message before, and of the one that is under way,
  // for which a connection is closed: they are frames of no message, which cost
  // the server time.
  static constexpr int64_t kMaxOtherBytes = int64_t{32} << 20;

  explicit MisuseDetector(Limits limits) : limits_(limits) {}

  // Returns the connections to close: each with more open calls than allowed;
  // each that has sent kMaxOtherBytes more than two messages can have since the
  // last one ended; and the one that has sent the most bytes that completed no
  // messages, if the process grows and has more memory than the watermark, or
  // has an eighth of that and grows by far more than what all connections have
  // received. In the latter case, kUnexplainedFirstBytes suffice of a new one.
  std::vector<Finding> Check(const std::vector<Use>& uses,
                             size_t resident_bytes);

  // Whether a connection with these calls is to be closed for their number.
  std::optional<Finding> CheckCalls(const ConnectionCalls& calls) const;

  // Whether a connection had sent kSuspiciousBytes at the last Check that
  // complete no messages.
  bool has_suspect() const;
  static constexpr int64_t kSuspiciousBytes = int64_t{1} << 20;

  // Whether a connection had ended before the last Check that had sent
  // kUnexplainedBytes: what it made the process hold is free now.
  bool heavy_connection_ended() const { return heavy_connection_ended_; }

 private:
  struct Past {
    int64_t bytes = 0;
    int64_t messages = 0;
    // Bytes since the last message that are not part of it.
    int64_t unexplained = 0;
    // Bytes since the beginning of the interval with the last message, less the
    // most that the messages of this interval can have.
    int64_t unfinished = 0;
  };

  // Those of `bytes` that so many messages cannot have.
  int64_t BytesBeyond(int64_t messages, int64_t bytes) const;

  const Limits limits_;
  size_t resident_bytes_ = 0;
  bool heavy_connection_ended_ = false;
  absl::flat_hash_map<ConnectionKey, Past> past_;
};

}  // namespace hawser::net

#endif  // HAWSER_NET_SERVER_MISUSE_DETECTOR_H_
