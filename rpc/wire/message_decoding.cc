#include <algorithm>
#include <climits>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "proto/tensor.pb.h"
#include "rpc/wire/header_fields.h"
#include "rpc/wire/message_codec.h"
#include "rpc/wire/wire_format.h"
#include "tensor/wire_codec.h"

namespace hawser::rpc {
namespace {

using internal::kCallId;
using internal::kContextId;
using internal::kContextIncarnation;
using internal::kDestination;
using internal::kDestinationIncarnation;
using internal::kJob;
using internal::kMaxTensors;
using internal::kMessageId;
using internal::kReplyAutograd;
using internal::kRequestAutograd;
using internal::kRequestTrace;
using internal::kSource;
using internal::kSourceIncarnation;
using internal::kSourceRank;
using internal::kTraceParent;
using internal::kTraceState;
using internal::WireField;
using internal::WireReader;
using internal::WireType;

// Protobuf's limit on a message, as its sizes are `int`.
constexpr uint64_t kMaxBodyBytes = INT_MAX;
// Limit on the header of a message or of a tensor.
constexpr uint64_t kMaxHeaderBytes = uint64_t{64} << 10;

absl::Status Malformed(absl::string_view what) {
  return absl::InternalError(
      absl::StrCat("the message received has a malformed ", what));
}

absl::StatusOr<AutogradMetadata> ParseAutograd(std::string_view bytes) {
  AutogradMetadata metadata;
  WireReader reader(bytes);
  WireField field;
  while (!reader.AtEnd()) {
    if (!reader.ReadField(field)) return Malformed("header");
    switch (MakeTag(field.number, field.type)) {
      case MakeTag(kContextId, WireType::kVarint):
        metadata.context_id = field.value;
        break;
      case MakeTag(kMessageId, WireType::kVarint):
        metadata.message_id = field.value;
        break;
      case MakeTag(kContextIncarnation, WireType::kFixed64):
        metadata.context_incarnation = Incarnation{field.value};
        break;
      default:
        break;
    }
  }
  return metadata;
}

// Returns an empty context for one that is not valid, as the specification
// demands.
absl::StatusOr<TraceContext> ParseTrace(std::string_view bytes) {
  TraceContext trace;
  WireReader reader(bytes);
  WireField field;
  while (!reader.AtEnd()) {
    if (!reader.ReadField(field)) return Malformed("header");
    if (field.type != WireType::kBytes) continue;
    // Checked first, so that a long text is not copied.
    if (field.number == kTraceParent &&
        field.bytes.size() <= TraceContext::kMaxParentBytes) {
      trace.traceparent = std::string(field.bytes);
    }
    if (field.number == kTraceState &&
        field.bytes.size() <= TraceContext::kMaxStateBytes) {
      trace.tracestate = std::string(field.bytes);
    }
  }
  return trace.IsValid() ? trace : TraceContext();
}

}  // namespace

// Scans the fields of a message in chunks. Fetches remote bytes other than
// elements of tensors.
class IncomingMessage::Scanner {
 public:
  explicit Scanner(IncomingMessage* message)
      : message_(*message), chunks_(message->payload_.chunks()) {}

  // Fills in the parts of the message.
  absl::Status Run() {
    absl::Status status = Walk();
    // Bytes that could not be fetched look malformed, so report the fetch error
    // first.
    return fetched_.ok() ? status : fetched_;
  }

 private:
  struct Position {
    size_t chunk = 0;
    size_t offset = 0;
  };

  absl::Status Walk() {
    remaining_ = message_.payload_.size();
    while (remaining_ > 0) {
      const Position start = position_;
      const uint64_t size_before = remaining_;
      uint64_t tag = 0;
      if (!ReadVarint(tag) || tag > UINT32_MAX || tag >> 3 == 0) {
        return Malformed("field");
      }
      const auto field = static_cast<uint32_t>(tag >> 3);
      uint64_t size = 0;
      if (!ReadSize(static_cast<WireType>(tag & 7), size)) {
        return Malformed("field");
      }
      const bool is_bytes = static_cast<WireType>(tag & 7) == WireType::kBytes;
      if (field < kHeaderField || field > kTensorDataField || !is_bytes) {
        Skip(size);
        AddToBody(start, size_before - remaining_);
        continue;
      }
      RETURN_IF_ERROR(TakePart(field, size));
    }
    return Finish();
  }

  bool MakeLocal(size_t chunk) {
    if (chunks_[chunk].remote == nullptr) return true;
    fetched_.Update(message_.payload_.Fetch(chunk));
    return fetched_.ok();
  }

  bool ReadVarint(uint64_t& value) {
    value = 0;
    for (size_t i = 0; i < internal::kMaxVarintBytes && remaining_ > 0; ++i) {
      if (!MakeLocal(position_.chunk)) return false;
      const uint64_t byte =
          static_cast<uint8_t>(chunks_[position_.chunk].data[position_.offset]);
      Skip(1);
      if (i == internal::kMaxVarintBytes - 1 && byte > 1) return false;
      value |= (byte & 0x7f) << (7 * i);
      if (byte < 0x80) return true;
    }
    return false;
  }

  // Reads the size of a field after its tag, excluding a length prefix.
  bool ReadSize(WireType type, uint64_t& size) {
    switch (type) {
      case WireType::kVarint: {
        uint64_t value = 0;
        size = 0;
        return ReadVarint(value);
      }
      case WireType::kFixed64:
        size = 8;
        break;
      case WireType::kFixed32:
        size = 4;
        break;
      case WireType::kBytes:
        if (!ReadVarint(size)) return false;
        break;
      default:
        return false;
    }
    return size <= remaining_;
  }

  // Skips `size` bytes, which must exist.
  void Skip(uint64_t size) {
    remaining_ -= size;
    while (size > 0) {
      const size_t here = chunks_[position_.chunk].size - position_.offset;
      if (size < here) {
        position_.offset += size;
        return;
      }
      size -= here;
      ++position_.chunk;
      position_.offset = 0;
    }
  }

  // Returns a view of `size` bytes at `start`, joined if they span chunks.
  std::string_view View(Position start, uint64_t size) {
    if (size == 0 || !MakeLocal(start.chunk)) return {};
    const Payload::Chunk& first = chunks_[start.chunk];
    if (size <= first.size - start.offset) {
      return {first.data + start.offset, size};
    }
    std::string joined;
    AppendBytes(start, size, joined);
    return Keep(std::move(joined));
  }

  void AppendBytes(Position start, uint64_t size, std::string& out) {
    while (size > 0) {
      if (!MakeLocal(start.chunk)) return;
      const Payload::Chunk& chunk = chunks_[start.chunk];
      const size_t here = std::min<uint64_t>(size, chunk.size - start.offset);
      out.append(chunk.data + start.offset, here);
      size -= here;
      start = {start.chunk + 1, 0};
    }
  }

  std::string_view Keep(std::string joined) {
    return *message_.joined_.emplace_back(
        std::make_unique<const std::string>(std::move(joined)));
  }

  void AddToBody(Position start, uint64_t size) {
    if (!body_.empty() && body_end_ == remaining_ + size) {
      body_.back().second += size;
    } else {
      body_.emplace_back(start, size);
    }
    body_end_ = remaining_;
  }

  absl::Status TakePart(uint32_t field, uint64_t size) {
    if (field != kTensorDataField && size > kMaxHeaderBytes) {
      return Malformed("header: it is too long");
    }
    if (field == kHeaderField) {
      message_.header_ = View(position_, size);
      Skip(size);
      return absl::OkStatus();
    }
    if (field == kTensorsField) {
      if (message_.tensors_.size() == kMaxTensors) {
        return Malformed("list of tensors: it is too long");
      }
      message_.tensors_.push_back({.header = View(position_, size)});
      Skip(size);
      return absl::OkStatus();
    }
    if (num_data_ == message_.tensors_.size()) {
      return Malformed("list of tensors: data without a header before it");
    }
    TensorPart& part = message_.tensors_[num_data_++];
    part.chunk = position_.chunk;
    part.offset = position_.offset;
    part.size = size;
    message_.tensor_bytes_ += size;
    Skip(size);
    return absl::OkStatus();
  }

  absl::Status Finish() {
    if (num_data_ != message_.tensors_.size()) {
      return Malformed("list of tensors: a header without data");
    }
    uint64_t body_bytes = 0;
    for (const auto& [start, size] : body_) body_bytes += size;
    if (body_bytes > kMaxBodyBytes) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "a message with ", body_bytes, " bytes beside its tensors exceeds ",
          kMaxBodyBytes, " bytes, the limit of protobuf"));
    }
    if (body_.size() == 1) {
      message_.body_ = View(body_[0].first, body_[0].second);
    } else if (body_.size() > 1) {
      std::string joined;
      for (const auto& [start, size] : body_) AppendBytes(start, size, joined);
      message_.body_ = Keep(std::move(joined));
    }
    return absl::OkStatus();
  }

  IncomingMessage& message_;
  const std::span<const Payload::Chunk> chunks_;
  Position position_;
  uint64_t remaining_ = 0;
  // Start and size of each run of adjacent fields of the body.
  absl::InlinedVector<std::pair<Position, uint64_t>, 2> body_;
  uint64_t body_end_ = 0;
  size_t num_data_ = 0;
  absl::Status fetched_;
};

absl::StatusOr<IncomingMessage> IncomingMessage::Parse(Payload payload) {
  IncomingMessage message;
  message.payload_ = std::move(payload);
  RETURN_IF_ERROR(Scanner(&message).Run());
  return message;
}

absl::StatusOr<RequestHeader> IncomingMessage::ParseRequestHeader() const {
  RequestHeader header;
  WireReader reader(header_);
  WireField field;
  while (!reader.AtEnd()) {
    if (!reader.ReadField(field)) return Malformed("header");
    switch (MakeTag(field.number, field.type)) {
      case MakeTag(kJob, WireType::kBytes):
        header.job = field.bytes;
        break;
      case MakeTag(kSource, WireType::kBytes):
        header.source = field.bytes;
        break;
      case MakeTag(kSourceRank, WireType::kVarint):
        header.source_rank = WorkerId(static_cast<int32_t>(field.value));
        break;
      case MakeTag(kSourceIncarnation, WireType::kFixed64):
        header.source_incarnation = Incarnation{field.value};
        break;
      case MakeTag(kDestination, WireType::kBytes):
        header.destination = field.bytes;
        break;
      case MakeTag(kDestinationIncarnation, WireType::kFixed64):
        header.destination_incarnation = Incarnation{field.value};
        break;
      case MakeTag(kCallId, WireType::kVarint):
        header.call_id = field.value;
        break;
      case MakeTag(kRequestAutograd, WireType::kBytes): {
        ASSIGN_OR_RETURN(header.autograd, ParseAutograd(field.bytes));
        break;
      }
      case MakeTag(kRequestTrace, WireType::kBytes): {
        ASSIGN_OR_RETURN(header.trace, ParseTrace(field.bytes));
        break;
      }
      default:
        break;
    }
  }
  return header;
}

absl::StatusOr<std::optional<AutogradMetadata>>
IncomingMessage::ParseReplyHeader() const {
  std::optional<AutogradMetadata> autograd;
  WireReader reader(header_);
  WireField field;
  while (!reader.AtEnd()) {
    if (!reader.ReadField(field)) return Malformed("header");
    if (field.number == kReplyAutograd && field.type == WireType::kBytes) {
      ASSIGN_OR_RETURN(autograd, ParseAutograd(field.bytes));
    }
  }
  return autograd;
}

absl::Status IncomingMessage::CopyTensor(size_t index, size_t offset,
                                         std::span<std::byte> memory) const {
  size_t chunk = tensors_[index].chunk;
  offset += tensors_[index].offset;
  while (!memory.empty()) {
    const size_t size = payload_.chunks()[chunk].size;
    if (offset < size) {
      const size_t here = std::min(memory.size(), size - offset);
      RETURN_IF_ERROR(payload_.Copy(chunk, offset, memory.data(), here));
      memory = memory.subspan(here);
      offset += here;
    }
    offset -= size;
    ++chunk;
  }
  return absl::OkStatus();
}

std::span<const std::byte> IncomingMessage::TensorInPlace(size_t index,
                                                          size_t offset,
                                                          size_t size) const {
  size_t chunk = tensors_[index].chunk;
  offset += tensors_[index].offset;
  while (offset >= payload_.chunks()[chunk].size) {
    offset -= payload_.chunks()[chunk].size;
    ++chunk;
  }
  const Payload::Chunk& there = payload_.chunks()[chunk];
  if (there.remote != nullptr || size > there.size - offset) return {};
  return std::as_bytes(std::span(there.data + offset, size));
}

absl::StatusOr<v1::TensorHeader> IncomingMessage::HeaderOf(size_t index) const {
  const std::string_view bytes = tensors_[index].header;
  v1::TensorHeader header;
  if (!header.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return Malformed("tensor header");
  }
  return header;
}

absl::StatusOr<tensor::WireTensor> IncomingMessage::ParseTensorHeader(
    size_t index) const {
  ASSIGN_OR_RETURN(const v1::TensorHeader header, HeaderOf(index));
  absl::StatusOr<tensor::WireTensor> wire =
      tensor::ValidateHeader(header, tensors_[index].size);
  if (wire.ok()) return wire;
  return Malformed(absl::StrCat("tensor: ", wire.status().message()));
}

tensor::StoragePtr IncomingMessage::StorageOf(size_t index) const {
  const TensorPart& part = tensors_[index];
  if (part.size == 0) return nullptr;
  const Payload::Chunk& chunk = payload_.chunks()[part.chunk];
  if (chunk.storage == nullptr || part.offset != 0 || part.size != chunk.size) {
    return nullptr;
  }
  return tensor::StoragePtr(chunk.storage);
}

tensor::StoragePtr IncomingMessage::SharedMemoryOf(
    size_t index, const v1::TensorHeader& header) const {
  const TensorPart& part = tensors_[index];
  // A bool that is neither 0 nor 1 is not harmless.
  if (part.size == 0 || header.dtype() == v1::DTYPE_BOOL) return nullptr;
  const Payload::Chunk& chunk = payload_.chunks()[part.chunk];
  if (chunk.remote == nullptr || part.size > chunk.size - part.offset) {
    return nullptr;
  }
  return chunk.remote->InPlace(part.offset, part.size);
}

absl::StatusOr<tensor::Tensor> IncomingMessage::ReadTensor(
    size_t index, const v1::TensorHeader& header, TransferCounters& counters,
    bool in_place) const {
  const TensorPart& part = tensors_[index];
  const tensor::StoragePtr shared =
      in_place ? SharedMemoryOf(index, header) : nullptr;
  const auto read = [&]() -> absl::StatusOr<tensor::Tensor> {
    if (shared != nullptr) return tensor::AdoptTensor(header, shared);
    if (tensor::StoragePtr storage = StorageOf(index)) {
      return tensor::AdoptTensor(header, std::move(storage));
    }
    return tensor::DecodeTensor(
        header, part.size, [&](std::span<std::byte> memory) {
          return CopyTensor(index, /*offset=*/0, memory);
        });
  };
  absl::StatusOr<tensor::Tensor> value = read();
  if (absl::IsInvalidArgument(value.status())) {
    return Malformed(absl::StrCat("tensor: ", value.status().message()));
  }
  if (value.ok()) {
    counters.AddReceived(part.size);
    if (shared == nullptr) counters.AddCopiedToReceive(part.size);
  }
  return value;
}

absl::StatusOr<tensor::Tensor> IncomingMessage::ReadTensor(
    size_t index, TransferCounters& counters) const {
  ASSIGN_OR_RETURN(const v1::TensorHeader header, HeaderOf(index));
  return ReadTensor(index, header, counters, /*in_place=*/false);
}

absl::StatusOr<std::vector<tensor::Tensor>> IncomingMessage::ReadTensors(
    TransferCounters& counters, std::vector<bool>* requires_grad,
    bool in_place) const {
  std::vector<tensor::Tensor> tensors;
  tensors.reserve(tensors_.size());
  for (size_t i = 0; i < tensors_.size(); ++i) {
    ASSIGN_OR_RETURN(const v1::TensorHeader header, HeaderOf(i));
    ASSIGN_OR_RETURN(tensor::Tensor value,
                     ReadTensor(i, header, counters, in_place));
    if (requires_grad != nullptr) {
      requires_grad->push_back(header.requires_grad());
    }
    tensors.push_back(std::move(value));
  }
  return tensors;
}

}  // namespace hawser::rpc
