#include "rpc/wire/message_codec.h"

#include <sys/mman.h>

#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "async/random_source.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/rpc.pb.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Body(const std::string& function) {
  v1::CallRequest request;
  request.set_function(function);
  return request.SerializeAsString();
}

RequestHeader Header() {
  return {.job = "job",
          .source = "a",
          .source_rank = WorkerId(1),
          .source_incarnation = Incarnation{11},
          .destination = "b",
          .destination_incarnation = Incarnation{22},
          .call_id = 5,
          .autograd = AutogradMetadata{.context_id = 7,
                                       .context_incarnation = Incarnation{33},
                                       .message_id = 9}};
}

Payload EncodeOk(OutgoingMessage message, TransferCounters& counters) {
  absl::StatusOr<Payload> payload = EncodeMessage(std::move(message), counters);
  EXPECT_THAT(payload, IsOk());
  return payload.ok() ? *std::move(payload) : Payload();
}

// The same bytes in chunks of at most `size`.
Payload Split(const std::string& bytes, size_t size) {
  Payload payload;
  for (size_t at = 0; at < bytes.size(); at += size) {
    payload.Append(bytes.substr(at, size));
  }
  return payload;
}

TEST(MessageCodecTest, GeneratedClassesReadEncodedMessages) {
  TransferCounters counters;
  const Tensor small = Tensor::FromVector<float>({1, 2, 3}, {3});
  const Tensor large = Tensor::Arange(5000);
  const std::string bytes = EncodeOk({.body = Body("f"),
                                      .header = EncodeRequestHeader(Header()),
                                      .tensors = {small, large},
                                      .requires_grad = {true, false}},
                                     counters)
                                .Flatten()
                                .value();
  v1::CallRequest request;
  ASSERT_TRUE(request.ParseFromString(bytes));
  EXPECT_EQ(request.function(), "f");
  EXPECT_EQ(request.header().job(), "job");
  EXPECT_EQ(request.header().source(), "a");
  EXPECT_EQ(request.header().source_rank(), 1);
  EXPECT_EQ(request.header().source_incarnation(), 11u);
  EXPECT_EQ(request.header().destination(), "b");
  EXPECT_EQ(request.header().destination_incarnation(), 22u);
  EXPECT_EQ(request.header().call_id(), 5u);
  EXPECT_EQ(request.header().autograd().context_id(), 7u);
  EXPECT_EQ(request.header().autograd().message_id(), 9u);
  EXPECT_EQ(request.header().autograd().context_incarnation(), 33u);
  ASSERT_EQ(request.tensors_size(), 2);
  EXPECT_TRUE(request.tensors(0).requires_grad());
  EXPECT_FALSE(request.tensors(1).requires_grad());
  EXPECT_EQ(request.tensors(1).dims(0), 5000);
  EXPECT_EQ(request.tensor_data(0).size(), 12u);
  EXPECT_EQ(request.tensor_data(1),
            std::string(reinterpret_cast<const char*>(large.data<float>()),
                        large.byte_size()));
}

TEST(MessageCodecTest, ReadsMessagesOfGeneratedClasses) {
  v1::CallRequest request;
  request.set_function("f");
  request.mutable_header()->set_job("job");
  request.mutable_header()->set_destination("b");
  v1::TensorHeader* header = request.add_tensors();
  header->set_dtype(v1::DTYPE_I32);
  header->add_dims(2);
  request.add_tensor_data(std::string("\1\0\0\0\2\0\0\0", 8));
  // As one chunk, and in chunks as small as a network may produce.
  const std::string bytes = request.SerializeAsString();
  for (size_t size : {bytes.size(), size_t{7}, size_t{1}}) {
    absl::StatusOr<IncomingMessage> message =
        IncomingMessage::Parse(Split(bytes, size));
    ASSERT_THAT(message, IsOk());
    EXPECT_EQ(message->body(), Body("f"));
    absl::StatusOr<RequestHeader> read = message->ParseRequestHeader();
    ASSERT_THAT(read, IsOk());
    EXPECT_EQ(read->job, "job");
    EXPECT_EQ(read->destination, "b");
    EXPECT_FALSE(read->autograd.has_value());
    TransferCounters counters;
    absl::StatusOr<std::vector<Tensor>> tensors =
        message->ReadTensors(counters, nullptr);
    ASSERT_THAT(tensors, IsOk());
    ASSERT_EQ(tensors->size(), 1u);
    EXPECT_THAT((*tensors)[0].ToVector<int32_t>(), ElementsAre(1, 2));
  }
}

TEST(MessageCodecTest, HeaderAndFlagsRoundTrip) {
  TransferCounters counters;
  absl::StatusOr<IncomingMessage> message = IncomingMessage::Parse(
      EncodeOk({.body = Body("f"),
                .header = EncodeRequestHeader(Header()),
                .tensors = {Tensor::Ones({2}), Tensor::Ones({2000})},
                .requires_grad = {false, true}},
               counters));
  ASSERT_THAT(message, IsOk());
  absl::StatusOr<RequestHeader> header = message->ParseRequestHeader();
  ASSERT_THAT(header, IsOk());
  EXPECT_EQ(header->source_incarnation, Incarnation{11});
  EXPECT_EQ(header->source_rank, WorkerId(1));
  EXPECT_EQ(header->call_id, 5u);
  ASSERT_TRUE(header->autograd.has_value());
  EXPECT_EQ(header->autograd->message_id, 9u);
  EXPECT_EQ(header->autograd->context_incarnation, Incarnation{33});
  std::vector<bool> requires_grad;
  ASSERT_THAT(message->ReadTensors(counters, &requires_grad), IsOk());
  EXPECT_THAT(requires_grad, ElementsAre(false, true));
}

TEST(MessageCodecTest, ReplyHeaderRoundTrips) {
  TransferCounters counters;
  const AutogradMetadata autograd{.context_id = 1, .message_id = 2};
  absl::StatusOr<IncomingMessage> message = IncomingMessage::Parse(EncodeOk(
      {.body = "", .header = EncodeReplyHeader(autograd), .tensors = {}},
      counters));
  ASSERT_THAT(message, IsOk());
  auto read = message->ParseReplyHeader();
  ASSERT_THAT(read, IsOk());
  ASSERT_TRUE(read->has_value());
  EXPECT_EQ((*read)->message_id, 2u);
  EXPECT_EQ(message->body(), "");
}

TEST(MessageCodecTest, DenseTensorsAreSentFromTheirMemory) {
  TransferCounters counters;
  Tensor large = Tensor::Arange(10000);
  const Payload payload = EncodeOk({.tensors = {large}}, counters);
  const auto chunks = payload.chunks();
  EXPECT_TRUE(std::any_of(chunks.begin(), chunks.end(), [&](const auto& chunk) {
    return chunk.data == large.raw_data();
  }));
  EXPECT_EQ(counters.totals().tensor_bytes_copied_to_send, 0u);
}

TEST(MessageCodecTest, PayloadKeepsTheTensorsMemory) {
  TransferCounters counters;
  bool released = false;
  std::vector<float> memory(1000, 1.0f);
  Payload payload;
  {
    absl::StatusOr<Tensor> tensor = Tensor::FromStorage(
        tensor::Storage::Wrap(memory.data(), 4000, tensor::kCpu,
                              [&] { released = true; }),
        0, {1000}, tensor::Strides({1}), tensor::DType::kF32);
    ASSERT_THAT(tensor, IsOk());
    payload = EncodeOk({.tensors = {*tensor}}, counters);
  }
  EXPECT_FALSE(released);
  payload = Payload();
  EXPECT_TRUE(released);
}

TEST(MessageCodecTest, ViewsSendOnlyTheirElements) {
  TransferCounters counters;
  const Tensor matrix = Tensor::Arange(1000000);
  absl::StatusOr<Tensor> row = matrix.Slice(0, 10, 1010);
  ASSERT_THAT(row, IsOk());
  EXPECT_LT(EncodeOk({.tensors = {*row}}, counters).size(), 4100u);
  EXPECT_EQ(counters.totals().tensor_bytes_sent, 4000u);
  EXPECT_EQ(counters.totals().tensor_bytes_copied_to_send, 0u);
}

TEST(MessageCodecTest, StridedTensorsAreCopiedOnce) {
  TransferCounters counters;
  absl::StatusOr<Tensor> transposed =
      Tensor::Arange(6000).Reshape({60, 100})->T();
  ASSERT_THAT(transposed, IsOk());
  absl::StatusOr<IncomingMessage> message =
      IncomingMessage::Parse(EncodeOk({.tensors = {*transposed}}, counters));
  ASSERT_THAT(message, IsOk());
  EXPECT_EQ(counters.totals().tensor_bytes_copied_to_send, 24000u);
  absl::StatusOr<std::vector<Tensor>> read =
      message->ReadTensors(counters, nullptr);
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ((*read)[0].ToVector<float>(), transposed->ToVector<float>());
  EXPECT_EQ(counters.totals().tensor_bytes_copied_to_receive, 24000u);
}

TEST(MessageCodecTest, EmptyTensorsRoundTrip) {
  TransferCounters counters;
  absl::StatusOr<IncomingMessage> message = IncomingMessage::Parse(
      EncodeOk({.tensors = {Tensor::Empty({0, 3}), Tensor::Scalar(4),
                            Tensor::Empty({0})}},
               counters));
  ASSERT_THAT(message, IsOk());
  absl::StatusOr<std::vector<Tensor>> read =
      message->ReadTensors(counters, nullptr);
  ASSERT_THAT(read, IsOk());
  ASSERT_EQ(read->size(), 3u);
  EXPECT_EQ((*read)[0].shape(), tensor::Shape({0, 3}));
  EXPECT_EQ((*read)[1].rank(), 0);
}

TEST(MessageCodecTest, UndefinedTensorsAreRefused) {
  TransferCounters counters;
  EXPECT_THAT(EncodeMessage({.tensors = {Tensor()}}, counters),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(MessageCodecTest, TensorPartsMustMatch) {
  v1::CallRequest request;
  request.add_tensor_data("abcd");
  EXPECT_THAT(
      IncomingMessage::Parse(Payload(request.SerializeAsString())),
      StatusIs(absl::StatusCode::kInternal, HasSubstr("without a header")));
  v1::TensorHeader* header = request.add_tensors();
  header->set_dtype(v1::DTYPE_F32);
  header->add_dims(2);
  absl::StatusOr<IncomingMessage> message =
      IncomingMessage::Parse(Payload(request.SerializeAsString()));
  ASSERT_THAT(message, IsOk());
  TransferCounters counters;
  EXPECT_THAT(message->ReadTensors(counters, nullptr),
              StatusIs(absl::StatusCode::kInternal));
  request.clear_tensor_data();
  EXPECT_THAT(IncomingMessage::Parse(Payload(request.SerializeAsString())),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("without data")));
}

TEST(MessageCodecTest, TooManyTensorsAreRefused) {
  std::string bytes;
  for (int i = 0; i < (1 << 16) + 1; ++i) bytes += std::string("\x72\x00", 2);
  EXPECT_THAT(IncomingMessage::Parse(Payload(bytes)),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("too long")));
}

// As in wire_traits_test: any outcome but a crash is correct.
TEST(MessageCodecTest, HostileBytesGiveStatus) {
  TransferCounters counters;
  const std::string valid =
      EncodeOk({.body = Body("function"),
                .header = EncodeRequestHeader(Header()),
                .tensors = {Tensor::Ones({3}), Tensor::Arange(20)},
                .requires_grad = {true, false}},
               counters)
          .Flatten()
          .value();
  async::RandomSource random(3);
  int accepted = 0;
  for (int i = 0; i < 10000; ++i) {
    std::string bytes = valid;
    for (int c = 1 + static_cast<int>(random.Below(4)); c > 0; --c) {
      const size_t at = random.Below(bytes.size());
      if (random.Below(8) == 0) {
        bytes.resize(std::max<size_t>(1, at));
      } else {
        bytes[at] = static_cast<char>(random.Below(256));
      }
    }
    absl::StatusOr<IncomingMessage> message =
        IncomingMessage::Parse(Split(bytes, 1 + random.Below(64)));
    if (!message.ok()) {
      EXPECT_THAT(message, StatusIs(absl::StatusCode::kInternal));
      continue;
    }
    ++accepted;
    (void)message->ParseRequestHeader();
    (void)message->ParseReplyHeader();
    std::vector<bool> requires_grad;
    (void)message->ReadTensors(counters, &requires_grad);
  }
  EXPECT_GT(accepted, 0);
}

// Protobuf's sizes are `int`: larger sizes would wrap to small or negative
// ones.
TEST(MessageCodecTest, BodiesAboveProtobufsLimitAreRejected) {
  constexpr size_t kMapped = size_t{3} << 30;
  // Only the beginning of the mapping is ever touched.
  void* const memory = mmap(nullptr, kMapped, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const std::shared_ptr<const void> owner(
      memory, [](void* mapped) { munmap(mapped, kMapped); });
  const auto parse = [&](const std::string& begin, size_t size) {
    std::memcpy(memory, begin.data(), begin.size());
    Payload payload;
    payload.Append(owner, memory, begin.size() + size);
    return IncomingMessage::Parse(std::move(payload)).status();
  };
  // One field of 2^31 - 7 bytes, including the six bytes of its tag and length.
  EXPECT_THAT(parse("\x0a\xf9\xff\xff\xff\x07", INT_MAX - 6), IsOk());
  EXPECT_THAT(parse("\x0a\xfa\xff\xff\xff\x07", INT_MAX - 5),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("2147483648 bytes beside its tensors")));
  // Fields 13 and 14, of 64 KiB and one byte more.
  for (const std::string tag : {"\x6a", "\x72"}) {
    EXPECT_THAT(parse(tag + "\x81\x80\x04", (size_t{64} << 10) + 1),
                StatusIs(absl::StatusCode::kInternal,
                         HasSubstr("header: it is too long")));
  }
}

}  // namespace
}  // namespace hawser::rpc
