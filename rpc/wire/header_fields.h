// Field numbers of the headers in proto/rpc.proto, and limits on messages.

#ifndef HAWSER_RPC_WIRE_HEADER_FIELDS_H_
#define HAWSER_RPC_WIRE_HEADER_FIELDS_H_

#include <cstddef>
#include <cstdint>

namespace hawser::rpc::internal {

// Fields of `RequestHeader`, `ReplyHeader`, `AutogradMetadata` and
// `TraceContext`.
inline constexpr uint32_t kJob = 1;
inline constexpr uint32_t kSource = 2;
inline constexpr uint32_t kSourceRank = 3;
inline constexpr uint32_t kSourceIncarnation = 4;
inline constexpr uint32_t kDestination = 5;
inline constexpr uint32_t kDestinationIncarnation = 6;
inline constexpr uint32_t kCallId = 7;
inline constexpr uint32_t kRequestAutograd = 8;
inline constexpr uint32_t kRequestTrace = 9;
inline constexpr uint32_t kReplyAutograd = 1;
inline constexpr uint32_t kContextId = 1;
inline constexpr uint32_t kMessageId = 2;
inline constexpr uint32_t kContextIncarnation = 3;
inline constexpr uint32_t kTraceParent = 1;
inline constexpr uint32_t kTraceState = 2;

// Limit on the tensors of a message, far above legitimate use; bounds the cost
// of empty tensors.
inline constexpr size_t kMaxTensors = size_t{1} << 16;

}  // namespace hawser::rpc::internal

#endif  // HAWSER_RPC_WIRE_HEADER_FIELDS_H_
