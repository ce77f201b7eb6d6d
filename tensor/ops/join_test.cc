#include "tensor/ops/join.h"

#include <vector>

#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensor/ops/test_tensors.h"
#include "tensor/tensor.h"

namespace hawser::tensor {
namespace {

using async::IsOk;
using async::StatusIs;
using ::testing::HasSubstr;

constexpr DType kDTypes[] = {DType::kF32,  DType::kF64, DType::kF16,
                             DType::kBF16, DType::kI64, DType::kI32,
                             DType::kU8,   DType::kBool};

TEST(JoinTest, ConcatAlongEveryDim) {
  for (const DType dtype : kDTypes) {
    const Tensor a = FromValues({0, 1, 1, 0}, {2, 2}, dtype);
    const Tensor b = FromValues({1, 1, 0, 0}, {2, 2}, dtype);
    for (const Tensor& x : Layouts(a)) {
      const Tensor pair[] = {x, b};
      ExpectTensor(*Concat(pair, 0), {4, 2}, {0, 1, 1, 0, 1, 1, 0, 0});
      ExpectTensor(*Concat(pair, -1), {2, 4}, {0, 1, 1, 1, 1, 0, 0, 0});
      ExpectTensor(*Stack(pair, 0), {2, 2, 2}, {0, 1, 1, 0, 1, 1, 0, 0});
      ExpectTensor(*Stack(pair, 1), {2, 2, 2}, {0, 1, 1, 1, 1, 0, 0, 0});
      ExpectTensor(*Stack(pair, -1), {2, 2, 2}, {0, 1, 1, 1, 1, 0, 0, 0});
    }
  }
}

TEST(JoinTest, UnevenAndEmptyParts) {
  const Tensor parts[] = {TestTensor({2, 0}), TestTensor({2, 3}),
                          TestTensor({2, 1}, DType::kF32, 2)};
  const Tensor joined = *Concat(parts, 1);
  EXPECT_EQ(joined.shape(), Shape({2, 4}));
  const int64_t sizes[] = {0, 3, 1};
  const auto pieces = Split(joined, sizes, 1);
  ASSERT_THAT(pieces, IsOk());
  for (size_t i = 0; i < 3; ++i) {
    ExpectTensor((*pieces)[i], parts[i].shape(), Values(parts[i]));
    EXPECT_EQ((*pieces)[i].storage().get(), joined.storage().get());
  }
  const Tensor scalars[] = {Tensor::Scalar(1), Tensor::Scalar(2)};
  ExpectTensor(*Stack(scalars, 0), {2}, {1, 2});
}

TEST(JoinTest, ErrorsNameWhatDoesNotFit) {
  constexpr auto kBad = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(Concat({}, 0), StatusIs(kBad, HasSubstr("no tensors")));
  EXPECT_THAT(Stack({}, 0), StatusIs(kBad));
  const Tensor a = TestTensor({2, 3});
  const Tensor uneven[] = {a, TestTensor({3, 3})};
  EXPECT_THAT(Concat(uneven, 1), StatusIs(kBad, HasSubstr("tensor 1")));
  EXPECT_THAT(Stack(uneven, 0), StatusIs(kBad, HasSubstr("tensor 1")));
  EXPECT_THAT(Concat(uneven, 2), StatusIs(kBad, HasSubstr("dim 2")));
  EXPECT_THAT(Stack(uneven, 3), StatusIs(kBad));
  const Tensor types[] = {a, TestTensor({2, 3}, DType::kF64)};
  EXPECT_THAT(Concat(types, 0), StatusIs(kBad, HasSubstr("dtypes differ")));
  const Tensor ranks[] = {a, TestTensor({3})};
  EXPECT_THAT(Concat(ranks, 0), StatusIs(kBad, HasSubstr("ranks differ")));
  const int64_t few[] = {1}, many[] = {2, 1}, negative[] = {-1, 3};
  EXPECT_THAT(Split(a, few, 0), StatusIs(kBad, HasSubstr("leave 1")));
  EXPECT_THAT(Split(a, many, 0), StatusIs(kBad));
  EXPECT_THAT(Split(a, negative, 0), StatusIs(kBad));
  EXPECT_THAT(Split(Tensor(), few, 0), StatusIs(kBad));
}

}  // namespace
}  // namespace hawser::tensor
