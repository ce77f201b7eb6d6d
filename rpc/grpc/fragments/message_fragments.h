// Division of long requests into fragments (proto/fragments.proto).

#ifndef HAWSER_RPC_GRPC_FRAGMENTS_MESSAGE_FRAGMENTS_H_
#define HAWSER_RPC_GRPC_FRAGMENTS_MESSAGE_FRAGMENTS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "grpcpp/support/byte_buffer.h"
#include "rpc/transport/payload.h"

namespace hawser::rpc {

// Requests up to this size are sent as one message, since a stream would cost
// more than it saves.
inline constexpr size_t kMaxWholeRequest = size_t{2} << 20;

// Size of a fragment. A fragment is copied, from cache, while the next one is
// received; each fragment has a small fixed cost at both ends
// (docs/performance.md).
inline constexpr size_t kFragmentBytes = size_t{512} << 10;

// Chunks of the payload of at least this size are separate parts; all bytes
// between two of them form one part.
inline constexpr size_t kMinLargePart = size_t{64} << 10;

// Divides one payload, all of whose bytes must be local, into fragments of
// `fragment_bytes` and a rest. Not thread-safe.
class MessageFragments {
 public:
  explicit MessageFragments(Payload payload,
                            size_t fragment_bytes = kFragmentBytes);

  // Whether all fragments have been returned.
  bool AtEnd() const { return chunk_ == payload_.chunks().size(); }
  // Returns the next fragment, which refers to the payload's memory and keeps
  // it alive. Must not be called AtEnd.
  ::grpc::ByteBuffer Next();

 private:
  std::vector<uint64_t> PartSizes() const;

  Payload payload_;
  size_t fragment_bytes_;
  bool begun_ = false;
  size_t chunk_ = 0;
  size_t offset_ = 0;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_GRPC_FRAGMENTS_MESSAGE_FRAGMENTS_H_
