#include "rpc/grpc/call_stream/frames.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "proto/call_stream.pb.h"
#include "rpc/errors/status_details.h"
#include "rpc/wire/wire_format.h"

namespace hawser::rpc {
namespace {

using internal::AppendBytesField;
using internal::AppendVarint;
using internal::AppendVarintField;
using internal::MakeTag;
using internal::WireField;
using internal::WireReader;
using internal::WireType;
using v1::CallFragment;
using v1::CallFrame;
using v1::CallStreamMessage;
using v1::MessageFragment;

// The peer works on one message while the next one is being filled.
constexpr size_t kMaxFrames = 16;
constexpr size_t kMaxBatchBytes = size_t{64} << 10;

CallFrame::Kind ToFrameKind(LinkMessage::Kind kind) {
  switch (kind) {
    case LinkMessage::Kind::kRequest:
      return CallFrame::KIND_REQUEST;
    case LinkMessage::Kind::kReply:
      return CallFrame::KIND_REPLY;
    case LinkMessage::Kind::kCancel:
      return CallFrame::KIND_CANCEL;
    case LinkMessage::Kind::kRelease:
      break;
  }
  return CallFrame::KIND_UNSPECIFIED;
}

absl::Status Malformed(absl::string_view what) {
  return absl::InternalError(
      absl::StrCat("a message of a call stream is malformed: ", what,
                   " (proto/call_stream.proto)"));
}

// Reads one frame. Returns false if it is malformed.
bool ParseFrame(std::string_view bytes, std::optional<LinkMessage::Kind>& kind,
                LinkMessage& message) {
  WireReader reader(bytes);
  WireField field;
  while (!reader.AtEnd()) {
    if (!reader.ReadField(field)) return false;
    const bool is_bytes = field.type == WireType::kBytes;
    switch (field.number) {
      case CallFrame::kKindFieldNumber:
        if (field.value == CallFrame::KIND_REQUEST) {
          kind = LinkMessage::Kind::kRequest;
        } else if (field.value == CallFrame::KIND_REPLY) {
          kind = LinkMessage::Kind::kReply;
        } else if (field.value == CallFrame::KIND_CANCEL) {
          kind = LinkMessage::Kind::kCancel;
        }
        break;
      case CallFrame::kCallFieldNumber:
        message.call = field.value;
        break;
      case CallFrame::kPathFieldNumber:
        if (!is_bytes) return false;
        message.path = field.bytes;
        break;
      case CallFrame::kTimeoutNsFieldNumber: {
        constexpr uint64_t kLongest = uint64_t{1} << 62;
        if (field.value == 0) break;
        message.deadline =
            async::AddDelay(std::chrono::steady_clock::now(),
                            absl::Nanoseconds(std::min(field.value, kLongest)));
        break;
      }
      case CallFrame::kMessageFieldNumber:
        if (!is_bytes || field.bytes.size() > kMaxFrameMessage) return false;
        // A copy: the bytes of other frames must not live as long.
        message.payload = Payload(std::string(field.bytes));
        break;
      case CallFrame::kErrorFieldNumber: {
        v1::StatusDetails details;
        if (!is_bytes ||
            !details.ParseFromArray(field.bytes.data(),
                                    static_cast<int>(field.bytes.size()))) {
          return false;
        }
        message.error = FromStatusDetails(details);
        if (message.error.ok()) {
          message.error =
              absl::UnknownError("the peer sent an error without a code");
        }
        break;
      }
      default:
        break;
    }
  }
  return true;
}

}  // namespace

void FrameBatch::Append(const LinkMessage& message) {
  // Kept for its memory.
  thread_local std::string head;
  head.clear();
  AppendVarintField(CallFrame::kKindFieldNumber, ToFrameKind(message.kind),
                    head);
  AppendVarintField(CallFrame::kCallFieldNumber, message.call, head);
  if (!message.path.empty()) {
    AppendBytesField(CallFrame::kPathFieldNumber, message.path, head);
  }
  if (message.deadline != async::kNever) {
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(
        message.deadline - std::chrono::steady_clock::now());
    AppendVarintField(CallFrame::kTimeoutNsFieldNumber,
                      static_cast<uint64_t>(std::max<int64_t>(1, left.count())),
                      head);
  }
  if (!message.error.ok()) {
    AppendBytesField(CallFrame::kErrorFieldNumber,
                     ToStatusDetails(message.error).SerializeAsString(), head);
  }
  if (message.payload.size() > 0) {
    AppendVarint(MakeTag(CallFrame::kMessageFieldNumber, WireType::kBytes),
                 head);
    AppendVarint(message.payload.size(), head);
  }
  AppendVarint(MakeTag(CallStreamMessage::kFramesFieldNumber, WireType::kBytes),
               bytes_);
  AppendVarint(head.size() + message.payload.size(), bytes_);
  bytes_ += head;
  for (const Payload::Chunk& chunk : message.payload.chunks()) {
    bytes_.append(chunk.data, chunk.size);
  }
  ++num_frames_;
  if (message.kind == LinkMessage::Kind::kReply) ++num_replies_;
}

bool FrameBatch::full() const {
  return num_frames_ >= kMaxFrames || bytes_.size() >= kMaxBatchBytes;
}

::grpc::ByteBuffer FrameBatch::ToByteBuffer() const {
  const ::grpc::Slice slice(bytes_);
  return ::grpc::ByteBuffer(&slice, 1);
}

absl::StatusOr<std::vector<LinkMessage>> ParseFrames(std::string_view bytes) {
  std::vector<LinkMessage> messages;
  messages.reserve(kMaxFrames);
  WireReader reader(bytes);
  WireField field;
  while (!reader.AtEnd()) {
    if (!reader.ReadField(field)) return Malformed("its fields");
    if (field.number != CallStreamMessage::kFramesFieldNumber) continue;
    if (field.type != WireType::kBytes) return Malformed("a frame");
    std::optional<LinkMessage::Kind> kind;
    LinkMessage message;
    if (!ParseFrame(field.bytes, kind, message)) return Malformed("a frame");
    if (!kind.has_value()) continue;
    message.kind = *kind;
    messages.push_back(std::move(message));
  }
  return messages;
}

::grpc::ByteBuffer ToFragmentMessage(uint64_t call,
                                     const ::grpc::ByteBuffer& fragment) {
  std::string inner;
  AppendVarintField(CallFragment::kCallFieldNumber, call, inner);
  AppendVarint(MakeTag(CallFragment::kFragmentFieldNumber, WireType::kBytes),
               inner);
  AppendVarint(fragment.Length(), inner);
  std::string head;
  AppendVarint(
      MakeTag(CallStreamMessage::kFragmentFieldNumber, WireType::kBytes), head);
  AppendVarint(inner.size() + fragment.Length(), head);
  head += inner;
  std::vector<::grpc::Slice> slices;
  (void)fragment.Dump(&slices);
  slices.insert(slices.begin(), ::grpc::Slice(head));
  return ::grpc::ByteBuffer(slices.data(), slices.size());
}

std::optional<ReceivedFragment> ParseFragmentMessage(
    const std::vector<::grpc::Slice>& message) {
  // Two tags and lengths, a tag and a number, and the tag that follows.
  constexpr size_t kMaxHead =
      2 * (1 + internal::kMaxVarintBytes) + (1 + internal::kMaxVarintBytes) + 1;
  std::string head;
  size_t total = 0;
  for (const ::grpc::Slice& slice : message) {
    total += slice.size();
    head.append(reinterpret_cast<const char*>(slice.begin()),
                std::min(slice.size(), kMaxHead - head.size()));
  }
  WireReader reader(head);
  const auto left = [&] { return reader.rest().size() + total - head.size(); };
  const auto starts = [&](uint32_t field) {
    uint64_t tag = 0;
    uint64_t size = 0;
    return reader.ReadVarint(tag) && tag == MakeTag(field, WireType::kBytes) &&
           reader.ReadVarint(size) && size == left();
  };
  ReceivedFragment received;
  uint64_t tag = 0;
  if (!starts(CallStreamMessage::kFragmentFieldNumber) ||
      !reader.ReadVarint(tag) ||
      tag != MakeTag(CallFragment::kCallFieldNumber, WireType::kVarint) ||
      !reader.ReadVarint(received.call) ||
      !starts(CallFragment::kFragmentFieldNumber)) {
    return std::nullopt;
  }
  size_t skipped = head.size() - reader.rest().size();
  received.first = !reader.rest().empty() &&
                   static_cast<uint8_t>(reader.rest().front()) >> 3 ==
                       MessageFragment::kPartBytesFieldNumber;
  absl::InlinedVector<::grpc::Slice, 4> slices;
  for (const ::grpc::Slice& slice : message) {
    const size_t skip = std::min(skipped, slice.size());
    skipped -= skip;
    if (skip < slice.size()) slices.push_back(slice.sub(skip, slice.size()));
  }
  received.fragment = ::grpc::ByteBuffer(slices.data(), slices.size());
  return received;
}

}  // namespace hawser::rpc
