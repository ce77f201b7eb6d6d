// Encoding of messages with tensors to bytes and back.

#ifndef HAWSER_RPC_WIRE_MESSAGE_CODEC_H_
#define HAWSER_RPC_WIRE_MESSAGE_CODEC_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rpc/identity/trace_context.h"
#include "rpc/identity/worker_info.h"
#include "rpc/transport/payload.h"
#include "rpc/transport/transfer_counters.h"
#include "rpc/wire/message_interceptor.h"
#include "tensor/tensor.h"
#include "tensor/wire_codec.h"

namespace hawser::v1 {
class TensorHeader;
}  // namespace hawser::v1

namespace hawser::rpc {

// Field numbers with the same meaning in every message of proto/.
inline constexpr uint32_t kHeaderField = 13;
inline constexpr uint32_t kTensorsField = 14;
inline constexpr uint32_t kTensorDataField = 15;

// `RequestHeader` of proto/rpc.proto. Borrows its strings, except those of
// `trace`.
struct RequestHeader {
  std::string_view job;
  std::string_view source;
  WorkerId source_rank;
  Incarnation source_incarnation{};
  std::string_view destination;
  Incarnation destination_incarnation{};
  uint64_t call_id = 0;
  std::optional<AutogradMetadata> autograd;
  // Empty if the request has none, or an invalid one.
  TraceContext trace = {};
};

// Serialise headers, without `autograd->requires_grad`, which is sent in the
// tensors' headers.
std::string EncodeRequestHeader(const RequestHeader& header);
std::string EncodeReplyHeader(const std::optional<AutogradMetadata>& autograd);
// Appends to a header the fields that differ between the requests of one worker
// to another.
void AppendCallFields(uint64_t call_id,
                      const std::optional<AutogradMetadata>& autograd,
                      const TraceContext& trace, std::string& header);

// The parts of an outgoing message.
struct OutgoingMessage {
  // The serialised body, without the three fields above.
  std::string body = {};
  // The serialised header; may be empty.
  std::string header = {};
  std::vector<tensor::Tensor> tensors = {};
  // Whether each tensor requires a gradient: empty, or one flag per tensor.
  std::vector<bool> requires_grad = {};
};

// Checks that a message can carry `tensors`; to be called before a
// MessageInterceptor records them. kInvalidArgument: one is undefined or not on
// the CPU, or there are too many.
absl::Status CheckSendable(std::span<const tensor::Tensor> tensors);

// Encodes a message: body, header, tensor headers, and last the elements.
//
// Elements of dense tensors are not copied, except for small tensors: the
// payload refers to their storage and keeps it alive. They must not be changed
// until the transport has released the payload, which for a request is until
// its reply. Other tensors are copied once. For a view only its own elements
// are sent, not its whole storage.
//
// Errors of CheckSendable, or of copying a tensor.
absl::StatusOr<Payload> EncodeMessage(OutgoingMessage message,
                                      TransferCounters& counters);

// An incoming message whose tensors have not been read yet.
//
// The input is untrusted. kInternal: malformed bytes, or tensors whose headers
// and data do not match in number, order or size.
class IncomingMessage {
 public:
  // Parses the parts of a message. Copies only parts other than tensor data
  // that are spread over several chunks or remote. Errors as
  // RemoteBytes::Fetch.
  static absl::StatusOr<IncomingMessage> Parse(Payload payload);

  // The fields other than the three above, in wire format. This and the views
  // returned by the methods below are valid as long as this object or the one
  // that it is moved to.
  std::string_view body() const { return body_; }

  absl::StatusOr<RequestHeader> ParseRequestHeader() const;
  absl::StatusOr<std::optional<AutogradMetadata>> ParseReplyHeader() const;

  // Bytes of all tensors.
  uint64_t tensor_bytes() const { return tensor_bytes_; }

  size_t num_tensors() const { return tensors_.size(); }

  // The validated header of tensor `index`; kInternal if it is malformed or
  // does not match the bytes of the tensor.
  absl::StatusOr<tensor::WireTensor> ParseTensorHeader(size_t index) const;
  // Reads one tensor, as ReadTensors does.
  absl::StatusOr<tensor::Tensor> ReadTensor(size_t index,
                                            TransferCounters& counters) const;
  // Copies or fetches bytes of tensor `index` from `offset` on, which must
  // exist. Errors as RemoteBytes::Fetch.
  absl::Status CopyTensor(size_t index, size_t offset,
                          std::span<std::byte> memory) const;
  // Bytes [offset, offset + size) of tensor `index`, which must exist, where
  // they arrived. Empty if they are remote or in several chunks.
  std::span<const std::byte> TensorInPlace(size_t index, size_t offset,
                                           size_t size) const;

  // Copies or fetches the elements of each tensor, once, into new storage; if
  // they arrived in a storage of their own, the tensor adopts it. Call at most
  // once. Sets `requires_grad`, unless null, to one flag per tensor.
  // `in_place`: elements that are in memory shared with the peer stay there, as
  // RemoteBytes::InPlace.
  absl::StatusOr<std::vector<tensor::Tensor>> ReadTensors(
      TransferCounters& counters, std::vector<bool>* requires_grad,
      bool in_place = false) const;

 private:
  class Scanner;
  struct TensorPart {
    std::string_view header;
    // Location of the elements: the chunk, the offset of the first byte in it,
    // and the number of bytes.
    size_t chunk = 0;
    size_t offset = 0;
    uint64_t size = 0;
  };

  IncomingMessage() = default;

  absl::StatusOr<v1::TensorHeader> HeaderOf(size_t index) const;
  absl::StatusOr<tensor::Tensor> ReadTensor(size_t index,
                                            const v1::TensorHeader& header,
                                            TransferCounters& counters,
                                            bool in_place) const;
  // The storage in which tensor `index` arrived alone; null if it did not.
  tensor::StoragePtr StorageOf(size_t index) const;
  // The memory that tensor `index` shares with the peer, if it may stay there.
  tensor::StoragePtr SharedMemoryOf(size_t index,
                                    const v1::TensorHeader& header) const;

  Payload payload_;
  // Joined copies of parts that were spread over several chunks.
  std::vector<std::unique_ptr<const std::string>> joined_;
  std::string_view body_;
  std::string_view header_;
  std::vector<TensorPart> tensors_;
  uint64_t tensor_bytes_ = 0;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_WIRE_MESSAGE_CODEC_H_
