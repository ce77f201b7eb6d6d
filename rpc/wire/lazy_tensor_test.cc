#include "rpc/wire/lazy_tensor.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/transport/payload.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<LazyTensor> LazyOf(Payload payload,
                               std::shared_ptr<TransferCounters> counters =
                                   std::make_shared<TransferCounters>()) {
  absl::StatusOr<IncomingMessage> message =
      IncomingMessage::Parse(std::move(payload));
  EXPECT_THAT(message, IsOk());
  if (!message.ok()) return {};
  auto tensors = LazyTensorsOf(
      std::make_shared<const IncomingMessage>(*std::move(message)),
      std::move(counters));
  EXPECT_THAT(tensors, IsOk());
  return tensors.ok() ? *std::move(tensors) : std::vector<LazyTensor>();
}

Payload Encode(std::vector<Tensor> tensors,
               std::vector<bool> requires_grad = {}) {
  TransferCounters counters;
  auto payload = EncodeMessage({.tensors = std::move(tensors),
                                .requires_grad = std::move(requires_grad)},
                               counters);
  EXPECT_THAT(payload, IsOk());
  return payload.ok() ? *std::move(payload) : Payload();
}

// The same bytes in chunks of `size` bytes.
Payload Split(const Payload& whole, size_t size) {
  const std::string bytes = whole.Flatten().value();
  Payload payload;
  for (size_t at = 0; at < bytes.size(); at += size) {
    payload.Append(bytes.substr(at, size));
  }
  return payload;
}

template <class T>
std::span<std::byte> BytesOf(std::vector<T>& values) {
  return std::as_writable_bytes(std::span<T>(values));
}

TEST(LazyTensorTest, DescribesTheTensorsBeforeTheyAreRead) {
  const std::vector<LazyTensor> lazy =
      LazyOf(Encode({Tensor::FromVector<float>({1, 2, 3, 4, 5, 6}, {2, 3}),
                     Tensor::FromVector<int64_t>({7}, {1})},
                    {true, false}));
  ASSERT_EQ(lazy.size(), 2u);
  EXPECT_EQ(lazy[0].dtype(), tensor::DType::kF32);
  EXPECT_EQ(lazy[0].shape(), tensor::Shape({2, 3}));
  EXPECT_EQ(lazy[0].bytes(), 24u);
  EXPECT_TRUE(lazy[0].requires_grad());
  EXPECT_EQ(lazy[1].dtype(), tensor::DType::kI64);
  EXPECT_FALSE(lazy[1].requires_grad());
}

// The elements lie across chunks of every size.
TEST(LazyTensorTest, ReadsIntoMemoryOfTheHandler) {
  const Payload whole = Encode({Tensor::FromVector<float>({1, 2, 3, 4}, {4})});
  for (size_t size = 1; size <= whole.size(); ++size) {
    const std::vector<LazyTensor> lazy = LazyOf(Split(whole, size));
    ASSERT_EQ(lazy.size(), 1u);
    std::vector<float> values(4);
    ASSERT_THAT(lazy[0].ReadInto(BytesOf(values)), IsOk());
    EXPECT_THAT(values, ElementsAre(1, 2, 3, 4)) << size;
    std::vector<float> middle(2);
    ASSERT_THAT(lazy[0].ReadInto(4, BytesOf(middle)), IsOk());
    EXPECT_THAT(middle, ElementsAre(2, 3)) << size;
    const auto tensor = lazy[0].Read();
    ASSERT_THAT(tensor, IsOk());
    EXPECT_THAT(tensor->ToVector<float>(), ElementsAre(1, 2, 3, 4)) << size;
  }
}

TEST(LazyTensorTest, CountsTheBytesThatAreRead) {
  const auto counters = std::make_shared<TransferCounters>();
  const std::vector<LazyTensor> lazy =
      LazyOf(Encode({Tensor::FromVector<float>({1, 2, 3, 4}, {4})}), counters);
  EXPECT_EQ(counters->totals().tensor_bytes_received, 0u);
  std::vector<float> values(2);
  ASSERT_THAT(lazy[0].ReadInto(0, BytesOf(values)), IsOk());
  EXPECT_EQ(counters->totals().tensor_bytes_received, 8u);
  EXPECT_EQ(counters->totals().tensor_bytes_copied_to_receive, 8u);
}

// A message with a tensor of `values`, whose elements lie in `memory`.
std::vector<LazyTensor> LazyIn(
    const std::shared_ptr<std::vector<std::byte>>& memory, size_t offset,
    const std::vector<float>& values,
    const std::shared_ptr<TransferCounters>& counters) {
  const size_t size = values.size() * sizeof(float);
  std::memcpy(memory->data() + offset, values.data(), size);
  const std::string whole =
      Encode({Tensor::FromVector<float>(values,
                                        {static_cast<int64_t>(values.size())})})
          .Flatten()
          .value();
  Payload payload(whole.substr(0, whole.size() - size));
  payload.Append(memory, memory->data() + offset, size);
  return LazyOf(std::move(payload), counters);
}

TEST(LazyTensorTest, ReadsElementsWhereTheyArrived) {
  const auto memory = std::make_shared<std::vector<std::byte>>(64);
  const auto counters = std::make_shared<TransferCounters>();
  const std::vector<LazyTensor> lazy =
      LazyIn(memory, 0, {1, 2, 3, 4}, counters);
  ASSERT_EQ(lazy.size(), 1u);
  const std::span<const std::byte> middle = lazy[0].ReadInPlace(4, 8);
  EXPECT_EQ(middle.data(), memory->data() + 4);
  EXPECT_EQ(middle.size(), 8u);
  EXPECT_EQ(counters->totals().tensor_bytes_received, 8u);
  EXPECT_EQ(counters->totals().tensor_bytes_copied_to_receive, 0u);
  EXPECT_TRUE(lazy[0].ReadInPlace(0, 17).empty());
  EXPECT_TRUE(lazy[0].ReadInPlace(17, 0).empty());
  EXPECT_TRUE(lazy[0].ReadInPlace(4, ~size_t{0}).empty());
}

TEST(LazyTensorTest, ElementsThatAreNotAlignedAreNotReadInPlace) {
  const auto memory = std::make_shared<std::vector<std::byte>>(64);
  for (size_t offset = 0; offset < 8; ++offset) {
    const std::vector<LazyTensor> lazy =
        LazyIn(memory, offset, {1, 2}, std::make_shared<TransferCounters>());
    ASSERT_EQ(lazy.size(), 1u);
    EXPECT_EQ(lazy[0].ReadInPlace(0, 8).empty(), offset % sizeof(float) != 0);
  }
}

// In place or not at all, whatever the chunks.
TEST(LazyTensorTest, ElementsInSeveralPiecesAreNotReadInPlace) {
  const std::vector<float> values = {1, 2, 3, 4};
  const Payload whole = Encode({Tensor::FromVector<float>(values, {4})});
  for (size_t size = 1; size <= whole.size(); ++size) {
    const std::vector<LazyTensor> lazy = LazyOf(Split(whole, size));
    ASSERT_EQ(lazy.size(), 1u);
    for (size_t i = 0; i < values.size(); ++i) {
      const std::span<const std::byte> one =
          lazy[0].ReadInPlace(i * sizeof(float), sizeof(float));
      if (one.empty()) continue;
      EXPECT_GE(size, sizeof(float));
      float value = 0;
      std::memcpy(&value, one.data(), one.size());
      EXPECT_EQ(value, values[i]) << size;
    }
  }
}

TEST(LazyTensorTest, BytesBeyondTheEndAreRefused) {
  const std::vector<LazyTensor> lazy =
      LazyOf(Encode({Tensor::FromVector<float>({1, 2}, {2})}));
  std::vector<float> values(3);
  EXPECT_THAT(lazy[0].ReadInto(BytesOf(values)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("12")));
  values.resize(2);
  EXPECT_THAT(lazy[0].ReadInto(4, BytesOf(values)),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(lazy[0].ReadInto(~size_t{0}, BytesOf(values)),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(lazy[0].ReadInto(8, {}), IsOk());
}

TEST(LazyTensorTest, BoolsAreZeroOrOne) {
  Payload payload = Encode({Tensor::FromVector<bool>({true, false}, {2})});
  std::string bytes = payload.Flatten().value();
  ASSERT_EQ(bytes[bytes.size() - 2], 1);
  bytes[bytes.size() - 2] = 7;
  const std::vector<LazyTensor> lazy = LazyOf(Payload(std::move(bytes)));
  std::vector<uint8_t> values(2);
  EXPECT_TRUE(lazy[0].ReadInPlace(0, 2).empty());
  ASSERT_THAT(lazy[0].ReadInto(BytesOf(values)), IsOk());
  EXPECT_THAT(values, ElementsAre(1, 0));
}

TEST(LazyTensorTest, MalformedHeadersAreRefused) {
  Payload payload = Encode({Tensor::FromVector<float>({1, 2}, {2})});
  std::string bytes = payload.Flatten().value();
  // Field 1 of the header, the dtype, becomes unknown.
  const size_t header = bytes.find("\x08\x01");
  ASSERT_NE(header, std::string::npos);
  bytes[header + 1] = 99;
  auto message = IncomingMessage::Parse(Payload(std::move(bytes)));
  ASSERT_THAT(message, IsOk());
  EXPECT_THAT(LazyTensorsOf(
                  std::make_shared<const IncomingMessage>(*std::move(message)),
                  std::make_shared<TransferCounters>())
                  .status(),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("dtype 99")));
}

// Memory of a peer that is not there any more.
class FreedBytes final : public RemoteBytes {
 public:
  absl::Status Fetch(size_t, void*, size_t) const override {
    return absl::UnavailableError("the peer has freed the message");
  }
};

TEST(LazyTensorTest, MemoryThatAPeerHasFreedIsUnavailable) {
  const std::string whole =
      Encode({Tensor::FromVector<float>({1, 2}, {2})}).Flatten().value();
  Payload payload(whole.substr(0, whole.size() - 8));
  payload.Append(std::make_shared<FreedBytes>(), 8);
  const std::vector<LazyTensor> lazy = LazyOf(std::move(payload));
  ASSERT_EQ(lazy.size(), 1u);
  std::vector<float> values(2);
  EXPECT_TRUE(lazy[0].ReadInPlace(0, 8).empty());
  EXPECT_THAT(lazy[0].ReadInto(BytesOf(values)),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(lazy[0].Read(), StatusIs(absl::StatusCode::kUnavailable));
}

}  // namespace
}  // namespace hawser::rpc
