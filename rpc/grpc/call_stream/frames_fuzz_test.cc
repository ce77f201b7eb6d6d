// Fuzz test: arbitrary bytes as a message of a call stream.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "async/check.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"
#include "rpc/grpc/call_stream/frames.h"
#include "rpc/link/message_link.h"

namespace hawser::rpc {
namespace {

// Whatever was read is the same when it was sent and read again, except for
// deadlines, which are relative.
void CheckFrames(std::string_view bytes) {
  const absl::StatusOr<std::vector<LinkMessage>> read = ParseFrames(bytes);
  if (!read.ok()) return;
  for (const LinkMessage& message : *read) {
    FrameBatch batch;
    batch.Append(message);
    std::vector<::grpc::Slice> slices;
    HAWSER_CHECK(batch.ToByteBuffer().Dump(&slices).ok());
    HAWSER_CHECK(slices.size() == 1);
    const auto again = ParseFrames(
        {reinterpret_cast<const char*>(slices[0].begin()), slices[0].size()});
    HAWSER_CHECK(again.ok() && again->size() == 1);
    const LinkMessage& copy = again->front();
    HAWSER_CHECK(copy.kind == message.kind && copy.call == message.call &&
                 copy.path == message.path &&
                 copy.error.code() == message.error.code() &&
                 *copy.payload.Flatten() == *message.payload.Flatten());
  }
}

// In two slices, of which the first has `first` bytes at most.
void CheckFragment(std::string_view bytes, size_t first) {
  first = std::min(first, bytes.size());
  const std::optional<ReceivedFragment> received = ParseFragmentMessage(
      {::grpc::Slice(bytes.data(), first),
       ::grpc::Slice(bytes.data() + first, bytes.size() - first)});
  if (!received.has_value()) return;
  // All behind the head, and nothing of it.
  std::vector<::grpc::Slice> slices;
  HAWSER_CHECK(received->fragment.Dump(&slices).ok());
  std::string fragment;
  for (const ::grpc::Slice& slice : slices) {
    fragment.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  HAWSER_CHECK(fragment.size() < bytes.size() && bytes.ends_with(fragment));
  const ::grpc::Slice whole(fragment);
  HAWSER_CHECK(ToFragmentMessage(received->call, ::grpc::ByteBuffer(&whole, 1))
                   .Length() <= bytes.size());
}

}  // namespace
}  // namespace hawser::rpc

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // The first byte splits the rest into slices, within its head.
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1),
                               size - 1);
  hawser::rpc::CheckFrames(bytes);
  hawser::rpc::CheckFragment(bytes, data[0] % 32);
  return 0;
}
