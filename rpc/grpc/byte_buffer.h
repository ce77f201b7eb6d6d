// Conversion between payloads and gRPC's byte buffers.

#ifndef HAWSER_RPC_GRPC_BYTE_BUFFER_H_
#define HAWSER_RPC_GRPC_BYTE_BUFFER_H_

#include "absl/status/statusor.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"
#include "rpc/transport/payload.h"

namespace hawser::rpc {

// Returns a slice that refers to a local chunk and keeps its owner alive. Small
// chunks are copied, which is cheaper.
::grpc::Slice ToSlice(const Payload::Chunk& chunk);

// Same, for all chunks.
::grpc::ByteBuffer ToByteBuffer(const Payload& payload);

// Returns chunks that refer to the buffer's slices and keep them alive.
// `buffer` is then empty. kInternal if gRPC cannot return the slices.
absl::StatusOr<Payload> ToPayload(::grpc::ByteBuffer& buffer);

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_GRPC_BYTE_BUFFER_H_
