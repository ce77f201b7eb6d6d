// Copies and conversions between layouts, against one element at a time.

#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensor/device_copy.h"
#include "tensor/internal/convert.h"
#include "tensor/tensor.h"

namespace hawser::tensor {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

// A permuted and stepped view with `shape`, within a larger tensor.
Tensor RandomLayout(const Shape& shape, DType dtype, std::mt19937_64& random) {
  std::vector<int> order(shape.rank());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  std::shuffle(order.begin(), order.end(), random);
  std::vector<int64_t> steps(shape.rank());
  Shape base_shape(shape.span());
  for (int i = 0; i < shape.rank(); ++i) {
    steps[i] = 1 + static_cast<int64_t>(random() % 3) / 2;
    base_shape[i] = shape[order[i]] * steps[i];
  }
  Tensor view = Tensor::Zeros(base_shape, {.dtype = dtype});
  for (int i = 0; i < shape.rank(); ++i) {
    view = *view.Slice(i, 0, view.dim(i), steps[i]);
  }
  std::vector<int> inverse(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    inverse[order[i]] = static_cast<int>(i);
  }
  return *view.Permute(inverse);
}

Shape RandomShape(std::mt19937_64& random) {
  Shape shape;
  for (uint64_t n = random() % 5; n > 0; --n) {
    shape.Append(static_cast<int64_t>(random() % 12) * (random() % 20 != 0));
  }
  return shape;
}

// Offset of the n-th element in row-major order.
int64_t OffsetOf(const Tensor& tensor, int64_t n) {
  int64_t offset = 0;
  for (int i = tensor.rank() - 1; i >= 0; --i) {
    offset += n % tensor.shape()[i] * tensor.strides()[i];
    n /= tensor.shape()[i];
  }
  return offset;
}

TEST(TensorCopiesTest, AnyLayoutToAnyLayout) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 1500; ++round) {
    const Shape shape = RandomShape(random);
    const DType from = static_cast<DType>(random() % kNumDTypes);
    const DType to =
        random() % 2 == 0 ? from : static_cast<DType>(random() % kNumDTypes);
    Tensor source = RandomLayout(shape, from, random);
    Tensor dest = RandomLayout(shape, to, random);
    VisitDType(from, [&]<class From>() {
      for (int64_t n = 0; n < source.num_elements(); ++n) {
        source.data<From>()[OffsetOf(source, n)] =
            internal::ConvertElement<From>(n % 113);
      }
      VisitDType(to, [&]<class To>() {
        ASSERT_THAT(dest.CopyFrom(source), IsOk());
        for (int64_t n = 0; n < source.num_elements(); ++n) {
          ASSERT_EQ(dest.data<To>()[OffsetOf(dest, n)],
                    internal::ConvertElement<To>(
                        source.data<From>()[OffsetOf(source, n)]))
              << source << source.strides() << dest.strides();
        }
      });
    });
  }
}

TEST(TensorCopiesTest, NothingBesidesTheViewIsWritten) {
  Tensor base = Tensor::Full({6, 7}, 9);
  Tensor view = *base.Slice(0, 1, 6, 2)->Slice(1, 2, 5, 2)->T();  // [2, 3]
  ASSERT_THAT(view.CopyFrom(Tensor::Zeros({2, 3}, {.dtype = DType::kI32})),
              IsOk());
  for (int64_t i = 0; i < 6; ++i) {
    for (int64_t j = 0; j < 7; ++j) {
      const bool in_view = i % 2 == 1 && (j == 2 || j == 4);
      EXPECT_EQ(base.data<float>()[i * 7 + j], in_view ? 0 : 9);
    }
  }
}

TEST(TensorCopiesTest, LargeTransposeIsExact) {
  const Tensor base =
      *Tensor::Arange(21210, {.dtype = DType::kI32}).Reshape({3, 70, 101});
  const Tensor dense = *base.Transpose(1, 2)->Contiguous();
  for (int64_t b = 0; b < 3; ++b) {
    for (int64_t i = 0; i < 101; ++i) {
      for (int64_t j = 0; j < 70; ++j) {
        ASSERT_EQ(dense.data<int32_t>()[(b * 101 + i) * 70 + j],
                  (b * 70 + j) * 101 + i);
      }
    }
  }
}

TEST(TensorCopiesTest, ExpandedSourceRepeats) {
  Tensor dest = Tensor::Empty({2, 3});
  ASSERT_THAT(
      dest.CopyFrom(*Tensor::FromVector<float>({1, 2, 3}, {3}).Expand({2, 3})),
      IsOk());
  EXPECT_THAT(dest.ToVector<float>(), ElementsAre(1, 2, 3, 1, 2, 3));
}

TEST(TensorCopiesTest, OverlappingElementsAreRefusedAsDestination) {
  Tensor dest = *Tensor::Zeros({1}).Expand({3});
  EXPECT_THAT(dest.CopyFrom(Tensor::Ones({3})),
              StatusIs(kInvalid, HasSubstr("same memory")));
  Tensor window = *Tensor::FromStorage(*Storage::Allocate(40, kCpu), 0, {3, 3},
                                       {2, 1}, DType::kF32);
  EXPECT_THAT(window.CopyFrom(Tensor::Ones({3, 3})), StatusIs(kInvalid));
}

TEST(TensorCopiesTest, ShapesMustAgree) {
  Tensor dest = Tensor::Zeros({2, 3});
  EXPECT_THAT(dest.CopyFrom(Tensor::Zeros({3, 2})),
              StatusIs(kInvalid, HasSubstr("cannot copy f32[3, 2] on cpu into "
                                           "f32[2, 3] on cpu")));
  EXPECT_THAT(dest.CopyFrom(Tensor::Zeros({3})), StatusIs(kInvalid));
}

TEST(TensorCopiesTest, OverlappingSourceIsReadBeforeItIsWritten) {
  Tensor square = *Tensor::Arange(9).Reshape({3, 3});
  ASSERT_THAT(square.CopyFrom(*square.T()), IsOk());
  EXPECT_THAT(square.ToVector<float>(), ElementsAre(0, 3, 6, 1, 4, 7, 2, 5, 8));
  Tensor line = Tensor::Arange(6);
  Tensor tail = *line.Narrow(0, 1, 5);
  ASSERT_THAT(tail.CopyFrom(*line.Narrow(0, 0, 5)), IsOk());
  EXPECT_THAT(line.ToVector<float>(), ElementsAre(0, 0, 1, 2, 3, 4));
  ASSERT_THAT(line.CopyFrom(line), IsOk());
  EXPECT_THAT(line.ToVector<float>(), ElementsAre(0, 0, 1, 2, 3, 4));
}

TEST(TensorCopiesTest, CloneIsContiguousAndIndependent) {
  Tensor base = *Tensor::Arange(6).Reshape({2, 3});
  const Tensor clone = *base.T()->Clone();
  EXPECT_TRUE(clone.is_contiguous());
  base.data<float>()[0] = 42;
  EXPECT_THAT(clone.ToVector<float>(), ElementsAre(0, 3, 1, 4, 2, 5));
}

TEST(TensorCopiesTest, ToTheSameIsTheSameTensor) {
  const Tensor tensor = *Tensor::Arange(6).Reshape({2, 3})->T();
  EXPECT_TRUE(tensor.To(DType::kF32)->is_same(tensor));
  EXPECT_TRUE(tensor.To(kCpu)->is_same(tensor));
  const Tensor converted = *tensor.To(DType::kI64);
  EXPECT_TRUE(converted.is_contiguous());
  EXPECT_THAT(converted.ToVector<int64_t>(), ElementsAre(0, 3, 1, 4, 2, 5));
}

TEST(TensorCopiesTest, EmptyAndScalarTensorsCopy) {
  Tensor empty = Tensor::Empty({0, 3});
  EXPECT_THAT(empty.CopyFrom(Tensor::Empty({0, 3})), IsOk());
  EXPECT_EQ(empty.T()->Clone()->shape(), (Shape{3, 0}));
  Tensor scalar = Tensor::Scalar(1);
  ASSERT_THAT(scalar.CopyFrom(Tensor::Scalar(3, {.dtype = DType::kI64})),
              IsOk());
  EXPECT_EQ(*scalar.item<float>(), 3);
}

}  // namespace
}  // namespace hawser::tensor
