// Fuzz test: arbitrary bytes as a message between workers, in any number of
// chunks.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "async/check.h"
#include "rpc/transport/payload.h"
#include "rpc/transport/transfer_counters.h"
#include "rpc/wire/message_codec.h"
#include "tensor/tensor.h"

namespace {

using ::hawser::rpc::Payload;

// `bytes` in chunks of `chunk_bytes`, each in memory of its own, so that the
// sanitizer sees a read past the end of one.
Payload Split(std::span<const uint8_t> bytes, size_t chunk_bytes) {
  Payload payload;
  while (!bytes.empty()) {
    const size_t size = std::min(chunk_bytes, bytes.size());
    const auto chunk = std::make_shared<const std::vector<uint8_t>>(
        bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    payload.Append(chunk, chunk->data(), size);
    bytes = bytes.subspan(size);
  }
  return payload;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // The first byte is the size of chunks.
  if (size == 0) return 0;
  const std::span<const uint8_t> bytes(data + 1, size - 1);
  absl::StatusOr<hawser::rpc::IncomingMessage> message =
      hawser::rpc::IncomingMessage::Parse(
          Split(bytes, std::max<size_t>(1, data[0])));
  if (!message.ok()) return 0;
  (void)message->ParseRequestHeader();
  (void)message->ParseReplyHeader();
  hawser::rpc::TransferCounters counters;
  std::vector<bool> requires_grad;
  const auto tensors = message->ReadTensors(counters, &requires_grad);
  if (!tensors.ok()) return 0;
  HAWSER_CHECK(requires_grad.size() == tensors->size());
  uint64_t tensor_bytes = 0;
  for (const hawser::tensor::Tensor& tensor : *tensors) {
    tensor_bytes += static_cast<uint64_t>(tensor.byte_size());
  }
  HAWSER_CHECK(tensor_bytes == message->tensor_bytes() &&
               tensor_bytes <= bytes.size());
  return 0;
}
