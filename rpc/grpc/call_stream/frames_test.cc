#include "rpc/grpc/call_stream/frames.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "async/clock.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"
#include "gtest/gtest.h"
#include "proto/call_stream.pb.h"
#include "rpc/link/message_link.h"
#include "rpc/transport/payload.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using Kind = LinkMessage::Kind;

std::vector<::grpc::Slice> Slices(const ::grpc::ByteBuffer& buffer) {
  std::vector<::grpc::Slice> slices;
  EXPECT_TRUE(buffer.Dump(&slices).ok());
  return slices;
}

std::string Bytes(const ::grpc::ByteBuffer& buffer) {
  std::string bytes;
  for (const ::grpc::Slice& slice : Slices(buffer)) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

TEST(FramesTest, MessagesRoundTrip) {
  absl::Status error = absl::AbortedError("no");
  error.SetPayload("type.googleapis.com/test", absl::Cord("details"));
  Payload payload("one ");
  payload.Append("two");
  FrameBatch batch;
  batch.Append(
      {.kind = Kind::kRequest,
       .call = 7,
       .path = "/t.T/Echo",
       .deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60),
       .payload = payload});
  batch.Append({.kind = Kind::kReply, .call = 1});
  batch.Append({.kind = Kind::kReply, .call = 2, .error = error});
  batch.Append({.kind = Kind::kCancel, .call = UINT64_MAX});
  EXPECT_EQ(batch.num_replies(), 2u);
  const std::string bytes = Bytes(batch.ToByteBuffer());
  EXPECT_EQ(bytes.size(), batch.bytes());
  v1::CallStreamMessage parsed;
  EXPECT_TRUE(parsed.ParseFromString(bytes));
  EXPECT_EQ(parsed.frames_size(), 4);

  const absl::StatusOr<std::vector<LinkMessage>> read = ParseFrames(bytes);
  ASSERT_THAT(read, IsOk());
  ASSERT_EQ(read->size(), 4u);
  const LinkMessage& request = read->at(0);
  EXPECT_EQ(request.kind, Kind::kRequest);
  EXPECT_EQ(request.call, 7u);
  EXPECT_EQ(request.path, "/t.T/Echo");
  EXPECT_EQ(request.payload.Flatten().value(), "one two");
  const absl::Duration left =
      async::TimeBetween(std::chrono::steady_clock::now(), request.deadline);
  EXPECT_GT(left, absl::Seconds(30));
  EXPECT_LE(left, absl::Seconds(60));
  EXPECT_EQ(read->at(1).kind, Kind::kReply);
  EXPECT_EQ(read->at(1).payload.size(), 0u);
  EXPECT_THAT(read->at(1).error, IsOk());
  EXPECT_EQ(read->at(1).deadline, async::kNever);
  EXPECT_EQ(read->at(2).error, error);
  EXPECT_EQ(read->at(3).kind, Kind::kCancel);
  EXPECT_EQ(read->at(3).call, UINT64_MAX);
}

TEST(FramesTest, PassedDeadlineStaysADeadline) {
  FrameBatch batch;
  batch.Append({.call = 1, .deadline = async::MonotonicTime()});
  const auto read = ParseFrames(Bytes(batch.ToByteBuffer()));
  ASSERT_THAT(read, IsOk());
  EXPECT_LE(read->at(0).deadline, std::chrono::steady_clock::now());
}

TEST(FramesTest, BatchIsFullByNumberAndBySize) {
  FrameBatch many;
  for (int i = 0; i < 15; ++i) many.Append({.kind = Kind::kReply});
  EXPECT_FALSE(many.full());
  many.Append({.kind = Kind::kReply});
  EXPECT_TRUE(many.full());
  FrameBatch large;
  large.Append({.payload = Payload(std::string(kMaxFrameMessage, 'x'))});
  EXPECT_TRUE(large.full());
}

std::string Serialize(const v1::CallFrame& frame) {
  v1::CallStreamMessage message;
  *message.add_frames() = frame;
  return message.SerializeAsString();
}

TEST(FramesTest, MalformedBytesAreErrors) {
  v1::CallFrame long_message;
  long_message.set_kind(v1::CallFrame::KIND_REQUEST);
  long_message.set_message(std::string(kMaxFrameMessage + 1, 'x'));
  for (const std::string& bytes :
       {std::string("\x0a"), std::string("\x0a\x05\x08"), std::string("\xff"),
        // A frame that is a number; a path that is a number.
        std::string("\x08\x01"), std::string("\x0a\x02\x18\x01", 4),
        // An error that is no message.
        std::string("\x0a\x03\x32\x01\xff", 5), Serialize(long_message)}) {
    EXPECT_THAT(ParseFrames(bytes), StatusIs(absl::StatusCode::kInternal));
  }
}

TEST(FramesTest, UnknownKindsAndFieldsAreIgnored) {
  v1::CallFrame unknown;
  unknown.set_kind(static_cast<v1::CallFrame::Kind>(77));
  v1::CallFrame known;
  known.set_kind(v1::CallFrame::KIND_CANCEL);
  known.set_call(3);
  // Field 15 of the message.
  const auto read =
      ParseFrames(Serialize(unknown) + "\x78\x01" + Serialize(known));
  ASSERT_THAT(read, IsOk());
  ASSERT_EQ(read->size(), 1u);
  EXPECT_EQ(read->at(0).call, 3u);
}

TEST(FramesTest, ErrorWithoutACodeIsAnError) {
  v1::CallFrame frame;
  frame.set_kind(v1::CallFrame::KIND_REPLY);
  frame.mutable_error()->set_message("no code");
  const auto read = ParseFrames(Serialize(frame));
  ASSERT_THAT(read, IsOk());
  EXPECT_THAT(read->at(0).error, StatusIs(absl::StatusCode::kUnknown));
}

TEST(FramesTest, FragmentsRoundTripInAnySlices) {
  for (const bool first : {true, false}) {
    v1::MessageFragment fragment;
    if (first) fragment.add_part_bytes(1000);
    fragment.set_content(std::string(300, 'x'));
    const std::string inner = fragment.SerializeAsString();
    const ::grpc::Slice slice(inner);
    const ::grpc::ByteBuffer message =
        ToFragmentMessage(1u << 30, ::grpc::ByteBuffer(&slice, 1));
    const std::string bytes = Bytes(message);
    v1::CallStreamMessage parsed;
    ASSERT_TRUE(parsed.ParseFromString(bytes));
    EXPECT_EQ(parsed.fragment().call(), 1u << 30);
    for (const size_t size : {size_t{1}, size_t{3}, size_t{40}, bytes.size()}) {
      std::vector<::grpc::Slice> slices;
      for (size_t at = 0; at < bytes.size(); at += size) {
        slices.emplace_back(bytes.substr(at, size));
      }
      const std::optional<ReceivedFragment> received =
          ParseFragmentMessage(slices);
      ASSERT_TRUE(received.has_value());
      EXPECT_EQ(received->call, 1u << 30);
      EXPECT_EQ(received->first, first);
      EXPECT_EQ(Bytes(received->fragment), inner);
    }
  }
}

TEST(FramesTest, OtherMessagesAreNoFragments) {
  FrameBatch batch;
  batch.Append({.kind = Kind::kReply, .call = 1});
  EXPECT_FALSE(ParseFragmentMessage(Slices(batch.ToByteBuffer())).has_value());
  EXPECT_FALSE(ParseFragmentMessage({}).has_value());
  // Lengths that do not match.
  for (const std::string_view bytes :
       {"\x12", "\x12\x05\x08\x01", "\x12\x04\x08\x01\x12\x05",
        "\x12\x02\x08\x01"}) {
    EXPECT_FALSE(
        ParseFragmentMessage({::grpc::Slice(std::string(bytes))}).has_value());
  }
}

}  // namespace
}  // namespace hawser::rpc
