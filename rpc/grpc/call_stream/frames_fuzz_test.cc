// Fuzz test: arbitrary bytes as a message of a call stream.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "async/check.h"
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

void CheckFragment(std::string_view bytes) {
  // Split in two slices.
  const size_t half = bytes.size() / 2;
  const std::optional<ReceivedFragment> received = ParseFragmentMessage(
      {::grpc::Slice(bytes.data(), half),
       ::grpc::Slice(bytes.data() + half, bytes.size() - half)});
  if (!received.has_value()) return;
  HAWSER_CHECK(received->fragment.Length() < bytes.size());
}

}  // namespace
}  // namespace hawser::rpc

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  hawser::rpc::CheckFrames(bytes);
  hawser::rpc::CheckFragment(bytes);
  return 0;
}
