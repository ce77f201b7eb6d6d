#include "rpc/grpc/byte_buffer.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/support/slice.h"

namespace hawser::rpc {
namespace {

constexpr size_t kMaxCopiedBytes = 512;

using Owner = std::shared_ptr<const void>;

}  // namespace

::grpc::Slice ToSlice(const Payload::Chunk& chunk) {
  if (chunk.size <= kMaxCopiedBytes) {
    return ::grpc::Slice(chunk.data, chunk.size);
  }
  return ::grpc::Slice(
      const_cast<char*>(chunk.data), chunk.size,
      [](void* owner) { delete static_cast<Owner*>(owner); },
      new Owner(chunk.owner));
}

::grpc::ByteBuffer ToByteBuffer(const Payload& payload) {
  absl::InlinedVector<::grpc::Slice, 4> slices;
  for (const Payload::Chunk& chunk : payload.chunks()) {
    slices.push_back(ToSlice(chunk));
  }
  return ::grpc::ByteBuffer(slices.data(), slices.size());
}

absl::StatusOr<Payload> ToPayload(::grpc::ByteBuffer& buffer) {
  auto slices = std::make_shared<std::vector<::grpc::Slice>>();
  if (buffer.Valid()) {
    const ::grpc::Status status = buffer.Dump(slices.get());
    if (!status.ok()) {
      return absl::InternalError(absl::StrCat(
          "a received message cannot be read: ", status.error_message()));
    }
    buffer.Clear();
  }
  Payload payload;
  for (const ::grpc::Slice& slice : *slices) {
    payload.Append(slices, slice.begin(), slice.size());
  }
  return payload;
}

}  // namespace hawser::rpc
