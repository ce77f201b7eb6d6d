// Payloads as gRPC's buffers.

#ifndef HAWSER_RPC_GRPC_BYTE_BUFFER_H_
#define HAWSER_RPC_GRPC_BYTE_BUFFER_H_

#include "absl/status/statusor.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"
#include "rpc/transport/payload.h"

namespace hawser::rpc {

// Refers to the chunk, whose bytes are here, and keeps its owner; a small one
// is copied, which costs less.
::grpc::Slice ToSlice(const Payload::Chunk& chunk);

// The same for all chunks.
::grpc::ByteBuffer ToByteBuffer(const Payload& payload);

// Chunks that refer to the buffer's slices and keep them. `buffer` is then
// empty. kInternal if gRPC does not give its slices.
absl::StatusOr<Payload> ToPayload(::grpc::ByteBuffer& buffer);

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_GRPC_BYTE_BUFFER_H_
