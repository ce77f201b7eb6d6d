#include "tensor/ops/gather.h"

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
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr DType kDTypes[] = {DType::kF32,  DType::kF64, DType::kF16,
                             DType::kBF16, DType::kI64, DType::kI32};

struct GatherCase {
  Shape a, index;
  int dim;
};

const GatherCase kCases[] = {{{5}, {8}, 0},
                             {{4, 6}, {3, 6}, 0},
                             {{4, 6}, {4, 9}, 1},
                             {{3, 4, 5}, {2, 7, 3}, 1},
                             {{3, 4}, {0, 2}, 1}};

Tensor TestIndex(const Shape& shape, int64_t limit, DType dtype) {
  std::vector<double> ids;
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    ids.push_back(static_cast<double>(i * 7 % limit));
  }
  return FromValues(ids, shape, dtype);
}

TEST(GatherTest, GatherAndScatterAddMatchIndexArithmetic) {
  for (const GatherCase& c : kCases) {
    for (const DType dtype : kDTypes) {
      for (const DType id_dtype : {DType::kI64, DType::kI32}) {
        const Tensor a = TestTensor(c.a, dtype, 1);
        const Tensor index = TestIndex(c.index, c.a[c.dim], id_dtype);
        Shape larger = c.index;
        for (int d = 0; d < larger.rank(); ++d) ++larger[d];
        const Tensor src = TestTensor(larger, dtype, 2);
        const auto x = Values(a), ids = Values(index), s = Values(src);
        std::vector<double> gathered, scattered = x;
        ForEachIndex(c.index, [&](const std::vector<int64_t>& at) {
          std::vector<int64_t> to = at;
          to[c.dim] = static_cast<int64_t>(ids[PositionOf(at, c.index)]);
          gathered.push_back(x[PositionOf(to, c.a)]);
          scattered[PositionOf(to, c.a)] += s[PositionOf(at, larger)];
        });
        for (size_t layout = 0; layout < 4; ++layout) {
          SCOPED_TRACE(a.ToString() + " " + index.ToString());
          const Tensor a_view = Layouts(a)[layout];
          const Tensor id_view = Layouts(index)[layout];
          ExpectTensor(*Gather(a_view, c.dim, id_view), c.index, gathered);
          ExpectTensor(
              *ScatterAdd(a_view, c.dim, id_view, Layouts(src)[layout]), c.a,
              scattered, 4 * Tolerance(dtype));
        }
      }
    }
  }
}

TEST(GatherTest, IndexSelectAndIndexAddMatchIndexArithmetic) {
  const Shape shape = {3, 4, 5};
  for (const DType dtype : kDTypes) {
    for (int dim = 0; dim < 3; ++dim) {
      const Tensor a = TestTensor(shape, dtype, 1);
      const Tensor index = TestIndex({6}, shape[dim], DType::kI64);
      Shape selected = shape;
      selected[dim] = 6;
      const Tensor src = TestTensor(selected, dtype, 2);
      const auto x = Values(a), ids = Values(index), s = Values(src);
      std::vector<double> result, added = x;
      ForEachIndex(selected, [&](const std::vector<int64_t>& at) {
        std::vector<int64_t> from = at;
        from[dim] = static_cast<int64_t>(ids[at[dim]]);
        result.push_back(x[PositionOf(from, shape)]);
        added[PositionOf(from, shape)] += s[PositionOf(at, selected)];
      });
      for (size_t layout = 0; layout < 4; ++layout) {
        const Tensor a_view = Layouts(a)[layout];
        ExpectTensor(*IndexSelect(a_view, dim, index), selected, result);
        ExpectTensor(*IndexAdd(a_view, dim - 3, index, Layouts(src)[layout]),
                     shape, added, 4 * Tolerance(dtype));
        ExpectTensor(a_view, shape, x);
      }
    }
  }
  EXPECT_EQ(
      IndexSelect(TestTensor({3, 0}), 0, Tensor::Zeros({2}, {DType::kI64}))
          ->shape(),
      Shape({2, 0}));
}

TEST(GatherTest, SumsOfManySmallAddendsDoNotStall) {
  for (const DType dtype : kFloatDTypes) {
    const Tensor zero = Tensor::Zeros({1}, {dtype});
    const Tensor index = Tensor::Zeros({4096}, {DType::kI64});
    const Tensor ones = Tensor::Ones({4096}, {dtype});
    ExpectTensor(*IndexAdd(zero, 0, index, ones), {1}, {4096});
    ExpectTensor(*ScatterAdd(zero, 0, index, ones), {1}, {4096});
    EXPECT_EQ(ScatterAdd(zero, 0, index, ones)->dtype(), dtype);
    ExpectTensor(zero, {1}, {0});
  }
}

TEST(GatherTest, BadIndicesAreNamed) {
  const Tensor a = TestTensor({3, 2});
  for (const double bad : {-1.0, 3.0}) {
    const auto names = AllOf(HasSubstr("position 1"), HasSubstr("[0, 3)"));
    const Tensor index = FromValues({0, bad}, {1, 2}, DType::kI64);
    const Tensor list = FromValues({0, bad}, {2}, DType::kI32);
    const Tensor src = TestTensor({2, 2});
    constexpr auto kRange = absl::StatusCode::kOutOfRange;
    EXPECT_THAT(Gather(a, 0, index), StatusIs(kRange, names));
    EXPECT_THAT(ScatterAdd(a, 0, index, src), StatusIs(kRange, names));
    EXPECT_THAT(IndexSelect(a, 0, list), StatusIs(kRange, names));
    EXPECT_THAT(IndexAdd(a, 0, list, src), StatusIs(kRange, names));
  }
}

TEST(GatherTest, ErrorsNameWhatDoesNotFit) {
  constexpr auto kBad = absl::StatusCode::kInvalidArgument;
  const Tensor a = TestTensor({3, 2});
  const Tensor index = Tensor::Zeros({3, 3}, {DType::kI64});
  EXPECT_THAT(Gather(a, 0, index), StatusIs(kBad, HasSubstr("Gather")));
  EXPECT_THAT(Gather(a, 2, index), StatusIs(kBad));
  EXPECT_THAT(Gather(a, 0, a), StatusIs(kBad, HasSubstr("i64 or i32")));
  EXPECT_THAT(Gather(a, 0, Tensor::Zeros({3}, {DType::kI64})), StatusIs(kBad));
  EXPECT_THAT(ScatterAdd(a, 1, index, TestTensor({3, 2})), StatusIs(kBad));
  EXPECT_THAT(ScatterAdd(a, 1, index, TestTensor({3, 3}, DType::kF64)),
              StatusIs(kBad));
  EXPECT_THAT(IndexSelect(a, 0, index), StatusIs(kBad));
  const Tensor list = Tensor::Zeros({4}, {DType::kI64});
  EXPECT_THAT(IndexAdd(a, 0, list, TestTensor({3, 2})), StatusIs(kBad));
  const Tensor flags = Tensor::Zeros({4, 2}, {DType::kBool});
  EXPECT_THAT(IndexAdd(flags, 0, list, flags), StatusIs(kBad));
}

}  // namespace
}  // namespace hawser::tensor
