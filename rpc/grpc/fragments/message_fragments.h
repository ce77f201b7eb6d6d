// Long requests in fragments: the sender's end of proto/fragments.proto.

#ifndef HAWSER_RPC_GRPC_FRAGMENTS_MESSAGE_FRAGMENTS_H_
#define HAWSER_RPC_GRPC_FRAGMENTS_MESSAGE_FRAGMENTS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "grpcpp/support/byte_buffer.h"
#include "rpc/transport/payload.h"

namespace hawser::rpc {

// Requests up to this size are sent whole: below, what another stream of
// messages costs is more than what it saves.
inline constexpr size_t kMaxWholeRequest = size_t{2} << 20;

// Copying one fragment goes on beside receiving the next, in a core's cache,
// and each costs a little at both ends (docs/performance.md).
inline constexpr size_t kFragmentBytes = size_t{512} << 10;

// Parts from this size on are the payload's own chunks; what lies between two
// of them is one part.
inline constexpr size_t kMinLargePart = size_t{64} << 10;

// Divides one payload, all of whose bytes are here. Not thread-safe.
class MessageFragments {
 public:
  explicit MessageFragments(Payload payload);

  // Whether all has been given out.
  bool AtEnd() const { return chunk_ == payload_.chunks().size(); }
  // The next fragment, not AtEnd: refers to the payload's memory and keeps it.
  ::grpc::ByteBuffer Next();

 private:
  std::vector<uint64_t> PartSizes() const;

  const Payload payload_;
  bool begun_ = false;
  size_t chunk_ = 0;
  size_t offset_ = 0;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_GRPC_FRAGMENTS_MESSAGE_FRAGMENTS_H_
