// Messages with tensors as bytes, and back.

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

#include "absl/status/statusor.h"
#include "rpc/identity/worker_info.h"
#include "rpc/transport/payload.h"
#include "rpc/transport/transfer_counters.h"
#include "rpc/wire/message_interceptor.h"
#include "tensor/tensor.h"

namespace hawser::v1 {
class TensorHeader;
}  // namespace hawser::v1

namespace hawser::rpc {

// Field numbers that mean the same in every message of proto/.
inline constexpr uint32_t kHeaderField = 13;
inline constexpr uint32_t kTensorsField = 14;
inline constexpr uint32_t kTensorDataField = 15;

// `RequestHeader` of proto/rpc.proto. Borrows its strings.
struct RequestHeader {
  std::string_view job;
  std::string_view source;
  WorkerId source_rank;
  Incarnation source_incarnation{};
  std::string_view destination;
  Incarnation destination_incarnation{};
  uint64_t call_id = 0;
  std::optional<AutogradMetadata> autograd;
};

// The serialised headers. `autograd->requires_grad` is not in them: it travels
// in the headers of the tensors.
std::string EncodeRequestHeader(const RequestHeader& header);
std::string EncodeReplyHeader(const std::optional<AutogradMetadata>& autograd);
// Adds to a header without these fields: what differs between the requests of
// one worker to another.
void AppendCallFields(uint64_t call_id,
                      const std::optional<AutogradMetadata>& autograd,
                      std::string& header);

// The parts of an outgoing message.
struct OutgoingMessage {
  // The serialised body, without the three fields above.
  std::string body = {};
  // The serialised header; may be empty.
  std::string header = {};
  std::vector<tensor::Tensor> tensors = {};
  // Which of them take part in autograd: empty, or one per tensor.
  std::vector<bool> requires_grad = {};
};

// The message's bytes: body, header, tensor headers, and last the elements.
//
// Elements of dense tensors on the CPU are not copied unless they are few: the
// payload refers to their storage and keeps it. They must not be changed until
// the transport has let go of the payload, that is, until the reply to a
// request. Other tensors are copied once. Views send what they show, not what
// they share.
//
// kInvalidArgument: an undefined tensor; or what copying it returns.
absl::StatusOr<Payload> EncodeMessage(OutgoingMessage message,
                                      TransferCounters& counters);

// An incoming message whose tensors have not been read yet.
//
// Trusts nothing. kInternal: bytes that are no message; tensors whose headers
// and data do not match in number, order or size.
class IncomingMessage {
 public:
  // Finds the parts of a message. Copies only those parts other than tensor
  // data that are spread over chunks, or remote. Errors as RemoteBytes::Fetch.
  static absl::StatusOr<IncomingMessage> Parse(Payload payload);

  // The fields other than the three above, in wire format. This, and what the
  // methods below borrow, is valid as long as this object or what it is moved
  // to.
  std::string_view body() const { return body_; }

  absl::StatusOr<RequestHeader> ParseRequestHeader() const;
  absl::StatusOr<std::optional<AutogradMetadata>> ParseReplyHeader() const;

  // Bytes of all tensors.
  uint64_t tensor_bytes() const { return tensor_bytes_; }

  // Copies, or fetches, each tensor's elements, once, into new storage; where
  // they came in a storage of their own, the tensor takes that. At most once.
  // Fills in `requires_grad`, unless null, with a flag per tensor.
  absl::StatusOr<std::vector<tensor::Tensor>> ReadTensors(
      TransferCounters& counters, std::vector<bool>* requires_grad) const;

 private:
  class Scanner;
  struct TensorPart {
    std::string_view header;
    // Where the elements lie: the chunk, the first byte in it, and how many
    // bytes from there on.
    size_t chunk = 0;
    size_t offset = 0;
    uint64_t size = 0;
  };

  IncomingMessage() = default;

  absl::StatusOr<tensor::Tensor> ReadTensor(
      const TensorPart& part, const v1::TensorHeader& header) const;
  // Copies the elements of a tensor to `memory`.
  absl::Status Copy(const TensorPart& part, std::span<std::byte> memory) const;

  Payload payload_;
  // Parts that were spread over chunks, joined.
  std::vector<std::unique_ptr<const std::string>> joined_;
  std::string_view body_;
  std::string_view header_;
  std::vector<TensorPart> tensors_;
  uint64_t tensor_bytes_ = 0;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_WIRE_MESSAGE_CODEC_H_
