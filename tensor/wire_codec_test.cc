#include "tensor/wire_codec.h"

#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/tensor.pb.h"

namespace hawser::tensor {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

v1::TensorHeader Header(int dtype, std::initializer_list<int64_t> dims) {
  v1::TensorHeader header;
  header.set_dtype(static_cast<v1::DType>(dtype));
  for (const int64_t dim : dims) header.add_dims(dim);
  return header;
}

std::span<const std::byte> BytesOf(const Tensor& tensor) {
  return {static_cast<const std::byte*>(tensor.raw_data()),
          static_cast<size_t>(tensor.byte_size())};
}

TEST(WireCodecTest, EveryDTypeKeepsItsBytes) {
  for (int i = 0; i < kNumDTypes; ++i) {
    const DType dtype = static_cast<DType>(i);
    const Tensor tensor =
        *Tensor::Arange(6, {.dtype = dtype}).Reshape({2, 1, 3});
    const v1::TensorHeader header = ToHeader(tensor, true);
    EXPECT_THAT(header.dims(), ElementsAre(2, 1, 3));
    const auto wire = ValidateHeader(header, tensor.byte_size());
    ASSERT_THAT(wire, IsOk());
    EXPECT_EQ(wire->dtype, dtype);
    EXPECT_EQ(wire->shape, tensor.shape());
    EXPECT_EQ(wire->bytes, tensor.byte_size());
    EXPECT_TRUE(wire->requires_grad);

    const auto decoded = DecodeTensor(header, std::vector{BytesOf(tensor)});
    ASSERT_THAT(decoded, IsOk());
    EXPECT_EQ(decoded->shape(), tensor.shape());
    EXPECT_EQ(decoded->dtype(), dtype);
    EXPECT_EQ(
        std::memcmp(decoded->raw_data(), tensor.raw_data(), tensor.byte_size()),
        0);
  }
}

TEST(WireCodecTest, ScalarAndEmptyTensors) {
  const Tensor scalar = Tensor::Scalar(4.5);
  const auto decoded =
      DecodeTensor(ToHeader(scalar), std::vector{BytesOf(scalar)});
  ASSERT_THAT(decoded, IsOk());
  EXPECT_EQ(decoded->shape(), Shape{});
  EXPECT_EQ(*decoded->item<float>(), 4.5f);

  const auto empty = DecodeTensor(Header(v1::DTYPE_F32, {3, 0, 2}), {});
  ASSERT_THAT(empty, IsOk());
  EXPECT_EQ(empty->shape(), (Shape{3, 0, 2}));
}

TEST(WireCodecTest, ChunksSplitAnywhereAreJoined) {
  const Tensor tensor = Tensor::Arange(5, {.dtype = DType::kI32});
  const std::span<const std::byte> bytes = BytesOf(tensor);
  for (size_t a = 0; a <= bytes.size(); ++a) {
    for (size_t b = a; b <= bytes.size(); ++b) {
      const auto decoded = DecodeTensor(
          ToHeader(tensor), std::vector{bytes.first(a), bytes.subspan(a, b - a),
                                        bytes.subspan(b)});
      ASSERT_THAT(decoded, IsOk());
      EXPECT_THAT(decoded->ToVector<int32_t>(), ElementsAre(0, 1, 2, 3, 4));
    }
  }
}

TEST(WireCodecTest, BoolBytesBecomeZeroOrOne) {
  const std::byte bytes[] = {std::byte{0}, std::byte{1}, std::byte{2},
                             std::byte{0xff}};
  const auto decoded =
      DecodeTensor(Header(v1::DTYPE_BOOL, {4}),
                   std::vector<std::span<const std::byte>>{bytes});
  ASSERT_THAT(decoded, IsOk());
  EXPECT_EQ(std::memcmp(decoded->raw_data(), "\0\1\1\1", 4), 0);
}

TEST(WireCodecTest, StorageIsTakenAsItIs) {
  for (const auto& [wire, expected] :
       {std::pair(v1::DTYPE_F32, std::string("\0\xff\2\1\0\0\0\0", 8)),
        std::pair(v1::DTYPE_BOOL, std::string("\0\1\1\1\0\0\0\0", 8))}) {
    StoragePtr storage = *Storage::Allocate(8, kCpu);
    void* const memory = storage->data();
    std::memcpy(memory, "\0\xff\2\1\0\0\0\0", 8);
    const int64_t count = wire == v1::DTYPE_F32 ? 2 : 8;
    EXPECT_THAT(AdoptTensor(Header(wire, {count + 1}), storage),
                StatusIs(kInvalid));
    const auto tensor =
        AdoptTensor(Header(wire, {count / 2, 2}), std::move(storage));
    ASSERT_THAT(tensor, IsOk());
    EXPECT_EQ(tensor->shape(), Shape({count / 2, 2}));
    EXPECT_TRUE(tensor->is_contiguous());
    EXPECT_EQ(tensor->raw_data(), memory);
    EXPECT_EQ(std::memcmp(memory, expected.data(), 8), 0);
  }
}

TEST(WireCodecTest, UnknownDTypeIsRefused) {
  for (const int dtype : {0, 9, 57, -1, std::numeric_limits<int>::max(),
                          std::numeric_limits<int>::min()}) {
    EXPECT_THAT(ValidateHeader(Header(dtype, {1}), 4),
                StatusIs(kInvalid, HasSubstr("dtype")))
        << dtype;
  }
}

TEST(WireCodecTest, RankBeyondSixteenIsRefused) {
  v1::TensorHeader header = Header(v1::DTYPE_U8, {});
  for (int i = 0; i < 16; ++i) header.add_dims(1);
  EXPECT_THAT(ValidateHeader(header, 1), IsOk());
  header.add_dims(1);
  EXPECT_THAT(ValidateHeader(header, 1),
              StatusIs(kInvalid, HasSubstr("17 dimensions")));
  for (int i = 0; i < 100000; ++i) header.add_dims(1);
  EXPECT_THAT(ValidateHeader(header, 1), StatusIs(kInvalid));
}

TEST(WireCodecTest, DimensionsOutsideTheirRangeAreRefused) {
  EXPECT_THAT(ValidateHeader(Header(v1::DTYPE_U8, {-1}), 0),
              StatusIs(kInvalid, HasSubstr("dimension 0 is -1")));
  EXPECT_THAT(ValidateHeader(Header(v1::DTYPE_U8, {0, kMaxWireDim + 1}), 0),
              StatusIs(kInvalid, HasSubstr("dimension 1")));
  EXPECT_THAT(ValidateHeader(Header(v1::DTYPE_U8, {0, kMaxWireDim}), 0),
              IsOk());
  EXPECT_THAT(
      ValidateHeader(
          Header(v1::DTYPE_U8, {std::numeric_limits<int64_t>::min()}), 0),
      StatusIs(kInvalid));
}

TEST(WireCodecTest, OverflowingSizesAreRefused) {
  // 2^80 elements, 2^64 elements (0 modulo 2^64), 2^62 elements of 4 bytes.
  EXPECT_THAT(
      ValidateHeader(Header(v1::DTYPE_U8, {kMaxWireDim, kMaxWireDim}), 0),
      StatusIs(kInvalid));
  EXPECT_THAT(
      ValidateHeader(Header(v1::DTYPE_U8, {int64_t{1} << 32, int64_t{1} << 32}),
                     0),
      StatusIs(kInvalid));
  EXPECT_THAT(
      ValidateHeader(
          Header(v1::DTYPE_F32, {int64_t{1} << 31, int64_t{1} << 31}), 0),
      StatusIs(kInvalid, HasSubstr("bytes")));
  // A zero does not hide sizes whose strides would overflow.
  EXPECT_THAT(
      ValidateHeader(Header(v1::DTYPE_U8, {0, kMaxWireDim, kMaxWireDim}), 0),
      StatusIs(kInvalid));
}

TEST(WireCodecTest, WrongNumberOfBytesIsRefusedBeforeAllocating) {
  const v1::TensorHeader header = Header(v1::DTYPE_F64, {3});
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{23}, uint64_t{25},
                               std::numeric_limits<uint64_t>::max()}) {
    EXPECT_THAT(ValidateHeader(header, bytes),
                StatusIs(kInvalid, HasSubstr("takes 24 bytes")));
  }
  // A terabyte announced, nothing sent.
  EXPECT_THAT(DecodeTensor(Header(v1::DTYPE_U8, {kMaxWireDim}), {}),
              StatusIs(kInvalid));
}

// A valid message, mutated: whatever comes out is a status or a tensor whose
// size is that of the bytes that came.
TEST(WireCodecTest, MutatedMessagesNeverCrash) {
  std::mt19937_64 random(20240229);
  const std::string seed =
      ToHeader(*Tensor::Arange(24).Reshape({2, 3, 4}), true)
          .SerializeAsString();
  int valid = 0;
  for (int i = 0; i < 10000; ++i) {
    std::string message = seed;
    for (uint64_t n = random() % 4 + 1; n > 0 && !message.empty(); --n) {
      const size_t at = random() % message.size();
      switch (random() % 4) {
        case 0:
          message[at] = static_cast<char>(random());
          break;
        case 1:
          message[at] = static_cast<char>(message[at] ^ (1 << random() % 8));
          break;
        case 2:
          message.erase(at, random() % 4);
          break;
        default:
          message.insert(at, random() % 9, static_cast<char>(random()));
      }
    }
    v1::TensorHeader header;
    if (!header.ParseFromString(message)) continue;
    const std::vector<std::byte> payload(random() % 2 == 0 ? 96
                                                           : random() % 512);
    const auto decoded =
        DecodeTensor(header, std::vector{std::span<const std::byte>(payload)});
    if (!decoded.ok()) {
      EXPECT_EQ(decoded.status().code(), kInvalid);
      continue;
    }
    ++valid;
    EXPECT_EQ(decoded->byte_size(), static_cast<int64_t>(payload.size()));
  }
  EXPECT_GT(valid, 0);
}

}  // namespace
}  // namespace hawser::tensor
