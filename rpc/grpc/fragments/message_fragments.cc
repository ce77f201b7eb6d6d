#include "rpc/grpc/fragments/message_fragments.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/wire_format_lite.h"
#include "grpcpp/support/slice.h"
#include "proto/fragments.pb.h"
#include "rpc/grpc/byte_buffer.h"

namespace hawser::rpc {
namespace {

using ::google::protobuf::internal::WireFormatLite;

// Appends the tag and length of the content, which is the last field.
void AppendContentHeader(size_t size, std::string& head) {
  ::google::protobuf::io::StringOutputStream stream(&head);
  ::google::protobuf::io::CodedOutputStream coded(&stream);
  coded.WriteTag(
      WireFormatLite::MakeTag(v1::MessageFragment::kContentFieldNumber,
                              WireFormatLite::WIRETYPE_LENGTH_DELIMITED));
  coded.WriteVarint64(size);
}

}  // namespace

MessageFragments::MessageFragments(Payload payload, size_t fragment_bytes)
    : payload_(std::move(payload)), fragment_bytes_(fragment_bytes) {}

std::vector<uint64_t> MessageFragments::PartSizes() const {
  std::vector<uint64_t> sizes;
  bool last_is_small = false;
  for (const Payload::Chunk& chunk : payload_.chunks()) {
    const bool is_small = chunk.size < kMinLargePart;
    if (is_small && last_is_small) {
      sizes.back() += chunk.size;
    } else {
      sizes.push_back(chunk.size);
    }
    last_is_small = is_small;
  }
  return sizes;
}

::grpc::ByteBuffer MessageFragments::Next() {
  absl::InlinedVector<::grpc::Slice, 4> slices(1);
  size_t size = 0;
  while (!AtEnd() && size < fragment_bytes_) {
    const Payload::Chunk& chunk = payload_.chunks()[chunk_];
    const size_t here = std::min(fragment_bytes_ - size, chunk.size - offset_);
    slices.push_back(ToSlice(
        {.owner = chunk.owner, .data = chunk.data + offset_, .size = here}));
    size += here;
    offset_ += here;
    if (offset_ == chunk.size) {
      ++chunk_;
      offset_ = 0;
    }
  }
  std::string head;
  if (!std::exchange(begun_, true)) {
    v1::MessageFragment fragment;
    for (const uint64_t part : PartSizes()) fragment.add_part_bytes(part);
    fragment.AppendToString(&head);
  }
  AppendContentHeader(size, head);
  slices[0] = ::grpc::Slice(head);
  return ::grpc::ByteBuffer(slices.data(), slices.size());
}

}  // namespace hawser::rpc
