// Fuzz test: arbitrary bytes as a message between workers, in any number of
// chunks.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "async/check.h"
#include "rpc/transport/payload.h"
#include "rpc/transport/transfer_counters.h"
#include "rpc/wire/message_codec.h"
#include "tensor/tensor.h"

namespace {

using ::hawser::rpc::Payload;

// `bytes` in chunks of `chunk_bytes`.
Payload Split(const std::shared_ptr<const std::string>& bytes,
              size_t chunk_bytes) {
  Payload payload;
  for (size_t at = 0; at < bytes->size(); at += chunk_bytes) {
    payload.Append(bytes, bytes->data() + at,
                   std::min(chunk_bytes, bytes->size() - at));
  }
  return payload;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // The first byte is the size of chunks.
  if (size == 0) return 0;
  const auto bytes = std::make_shared<const std::string>(
      reinterpret_cast<const char*>(data + 1), size - 1);
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
               tensor_bytes <= bytes->size());
  return 0;
}
