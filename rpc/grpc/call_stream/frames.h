// Encoding of the messages of a call stream (proto/call_stream.proto).

#ifndef HAWSER_RPC_GRPC_CALL_STREAM_FRAMES_H_
#define HAWSER_RPC_GRPC_CALL_STREAM_FRAMES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"
#include "rpc/link/message_link.h"

namespace hawser::rpc {

// Requests and replies up to this size are sent in frames.
inline constexpr size_t kMaxFrameMessage = size_t{64} << 10;

// A message of the stream that is being filled with frames. Not thread-safe.
class FrameBatch {
 public:
  // Appends a frame. The payload is local and has at most kMaxFrameMessage
  // bytes.
  void Append(const LinkMessage& message);

  // Whether the next frame should go to another message: the peer can then work
  // on this one.
  bool full() const;
  size_t num_replies() const { return num_replies_; }
  size_t bytes() const { return bytes_.size(); }

  ::grpc::ByteBuffer ToByteBuffer() const;

 private:
  std::string bytes_;
  size_t num_frames_ = 0;
  size_t num_replies_ = 0;
};

// Reads the frames of a message from an untrusted peer. Frames of an unknown
// kind are left out. Deadlines are relative to now. kInternal if the bytes are
// malformed.
absl::StatusOr<std::vector<LinkMessage>> ParseFrames(std::string_view bytes);

// Returns the message with the next fragment of the reply to `call`; `fragment`
// is a serialised MessageFragment.
::grpc::ByteBuffer ToFragmentMessage(uint64_t call,
                                     const ::grpc::ByteBuffer& fragment);

struct ReceivedFragment {
  uint64_t call = 0;
  // Whether it is the first fragment of the reply.
  bool first = false;
  // A serialised MessageFragment.
  ::grpc::ByteBuffer fragment;
};

// Reads a message from an untrusted peer; nullopt if it contains no fragment.
std::optional<ReceivedFragment> ParseFragmentMessage(
    const std::vector<::grpc::Slice>& message);

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_GRPC_CALL_STREAM_FRAMES_H_
