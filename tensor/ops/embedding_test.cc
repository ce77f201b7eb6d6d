#include "tensor/ops/embedding.h"

#include <cstdint>
#include <numeric>
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

TEST(EmbeddingTest, SelectsRowsAndAddsGradients) {
  for (const DType dtype : kFloatDTypes) {
    for (const DType id_dtype : {DType::kI64, DType::kI32}) {
      const Tensor weight = TestTensor({5, 7}, dtype);
      const Tensor ids = FromValues({4, 0, 4, 2, 1, 4}, {2, 3}, id_dtype);
      const std::vector<double> w = Values(weight), id = Values(ids);
      const Tensor dout = TestTensor({2, 3, 7}, dtype, 2);
      const std::vector<double> g = Values(dout);
      std::vector<double> out, dweight(w.size());
      for (size_t i = 0; i < id.size(); ++i) {
        const auto row = static_cast<size_t>(id[i]);
        for (size_t j = 0; j < 7; ++j) {
          out.push_back(w[row * 7 + j]);
          dweight[row * 7 + j] += g[i * 7 + j];
        }
      }
      for (size_t layout = 0; layout < 4; ++layout) {
        const Tensor id_view = Layouts(ids)[layout];
        ExpectTensor(*Embedding(Layouts(weight)[layout], id_view), {2, 3, 7},
                     out);
        ExpectTensor(*EmbeddingGrad(Layouts(dout)[layout], id_view, 5), {5, 7},
                     dweight, 3 * Tolerance(dtype));
      }
    }
  }
}

TEST(EmbeddingTest, GradientOfAFrequentIdDoesNotStall) {
  constexpr int64_t kIds = 4096;
  const Tensor ids = Tensor::Zeros({kIds}, {DType::kI64});
  std::vector<int64_t> starts(kIds);
  std::iota(starts.begin(), starts.end(), 0);
  const Tensor offsets = Tensor::FromVector(starts, {kIds});
  const Tensor max_ids = Tensor::Zeros({kIds, 1}, {DType::kI64});
  for (const DType dtype : kFloatDTypes) {
    const Tensor dout = Tensor::Ones({kIds, 1}, {dtype});
    ExpectTensor(*EmbeddingGrad(dout, ids, 1), {1, 1}, {kIds});
    EXPECT_EQ(EmbeddingGrad(dout, ids, 1)->dtype(), dtype);
    for (const BagMode mode : {BagMode::kSum, BagMode::kMean, BagMode::kMax}) {
      const auto grad = EmbeddingBagGrad(dout, ids, offsets, max_ids, mode, 1);
      ExpectTensor(*grad, {1, 1}, {kIds});
      EXPECT_EQ(grad->dtype(), dtype);
    }
  }
}

TEST(EmbeddingTest, EmptyAndScalarIds) {
  const Tensor weight = TestTensor({5, 2});
  const Tensor none = Tensor::Zeros({0, 3}, {DType::kI64});
  EXPECT_EQ(Embedding(weight, none)->shape(), Shape({0, 3, 2}));
  ExpectTensor(*EmbeddingGrad(Tensor::Zeros({0, 3, 2}), none, 2), {2, 2},
               {0, 0, 0, 0});
  const Tensor one = Tensor::Scalar(3, {DType::kI64});
  ExpectTensor(*Embedding(weight, one), {2}, Values(*weight.Select(0, 3)));
}

TEST(EmbeddingTest, BadIdsAreNamed) {
  const Tensor weight = TestTensor({5, 2});
  for (const double bad : {-1.0, 5.0}) {
    const Tensor ids = FromValues({0, 1, bad}, {3}, DType::kI64);
    const auto names = AllOf(HasSubstr("position 2"), HasSubstr("[0, 5)"));
    EXPECT_THAT(Embedding(weight, ids),
                StatusIs(absl::StatusCode::kOutOfRange, names));
    EXPECT_THAT(EmbeddingGrad(TestTensor({3, 2}), ids, 5),
                StatusIs(absl::StatusCode::kOutOfRange, names));
  }
}

struct BagReference {
  std::vector<double> out, max_ids, dweight;
};

BagReference Reference(BagMode mode, const std::vector<double>& w, size_t d,
                       const std::vector<double>& ids,
                       const std::vector<double>& offsets,
                       const std::vector<double>& g) {
  BagReference r;
  r.dweight.resize(w.size());
  for (size_t i = 0; i < offsets.size(); ++i) {
    const auto first = static_cast<size_t>(offsets[i]);
    const size_t last = i + 1 < offsets.size()
                            ? static_cast<size_t>(offsets[i + 1])
                            : ids.size();
    for (size_t j = 0; j < d; ++j) {
      double sum = 0, best = -1;
      for (size_t k = first; k < last; ++k) {
        const double x = w[static_cast<size_t>(ids[k]) * d + j];
        sum += x;
        if (best < 0 || x > w[static_cast<size_t>(best) * d + j]) best = ids[k];
      }
      const double count = static_cast<double>(last - first);
      r.max_ids.push_back(best);
      if (mode == BagMode::kMax) {
        const size_t at = best < 0 ? 0 : static_cast<size_t>(best) * d + j;
        r.out.push_back(best < 0 ? 0 : w[at]);
        if (best >= 0) r.dweight[at] += g[i * d + j];
        continue;
      }
      const double scale =
          mode == BagMode::kMean && last > first ? 1 / count : 1;
      r.out.push_back(sum * scale);
      for (size_t k = first; k < last; ++k) {
        r.dweight[static_cast<size_t>(ids[k]) * d + j] += g[i * d + j] * scale;
      }
    }
  }
  return r;
}

TEST(EmbeddingBagTest, MatchesLoopsOverDoubles) {
  const std::vector<double> ids = {4, 0, 4, 2, 1, 4, 3}, offsets = {0, 3, 3, 4};
  for (const DType dtype : kFloatDTypes) {
    for (const DType id_dtype : {DType::kI64, DType::kI32}) {
      for (const BagMode mode :
           {BagMode::kSum, BagMode::kMean, BagMode::kMax}) {
        const Tensor weight = TestTensor({5, 6}, dtype);
        const Tensor dout = TestTensor({4, 6}, dtype, 2);
        const BagReference r =
            Reference(mode, Values(weight), 6, ids, offsets, Values(dout));
        const Tensor id = FromValues(ids, {7}, id_dtype);
        const Tensor offset = FromValues(offsets, {4}, id_dtype);
        for (size_t layout = 0; layout < 4; ++layout) {
          const Tensor id_view = Layouts(id)[layout];
          const Tensor offset_view = Layouts(offset)[layout];
          const auto result =
              EmbeddingBag(Layouts(weight)[layout], id_view, offset_view, mode);
          ASSERT_THAT(result, IsOk());
          ExpectTensor(result->out, {4, 6}, r.out, 3 * Tolerance(dtype));
          ASSERT_EQ(result->max_ids.defined(), mode == BagMode::kMax);
          if (mode == BagMode::kMax) {
            ExpectTensor(result->max_ids, {4, 6}, r.max_ids);
          }
          ExpectTensor(*EmbeddingBagGrad(Layouts(dout)[layout], id_view,
                                         offset_view, result->max_ids, mode, 5),
                       {5, 6}, r.dweight, 3 * Tolerance(dtype));
        }
      }
    }
  }
}

TEST(EmbeddingBagTest, BadOffsetsAndIdsAreNamed) {
  const Tensor weight = TestTensor({5, 2});
  const auto run = [&](const std::vector<double>& ids,
                       const std::vector<double>& offsets) {
    return EmbeddingBag(
        weight,
        FromValues(ids, {static_cast<int64_t>(ids.size())}, DType::kI64),
        FromValues(offsets, {static_cast<int64_t>(offsets.size())},
                   DType::kI64),
        BagMode::kSum);
  };
  EXPECT_THAT(run({0, 7}, {0}),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("id 7")));
  EXPECT_THAT(run({0, 1}, {0, 3}), StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_THAT(run({0, 1}, {1}), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(run({0, 1}, {}), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(
      run({0, 1, 2}, {0, 2, 1}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("decrease")));
  EXPECT_EQ(run({}, {0, 0})->out.shape(), Shape({2, 2}));
  EXPECT_EQ(run({}, {})->out.shape(), Shape({0, 2}));
  const Tensor id = Tensor::Zeros({1}, {DType::kI64});
  const Tensor bad = Tensor::Full({1, 2}, 5, {DType::kI64});
  EXPECT_THAT(
      EmbeddingBagGrad(TestTensor({1, 2}), id, id, bad, BagMode::kMax, 5),
      StatusIs(absl::StatusCode::kOutOfRange));
}

TEST(EmbeddingTest, ErrorsNameWhatDoesNotFit) {
  constexpr auto kBad = absl::StatusCode::kInvalidArgument;
  const Tensor weight = TestTensor({5, 2});
  const Tensor ids = Tensor::Zeros({3}, {DType::kI64});
  EXPECT_THAT(Embedding(weight, TestTensor({3})),
              StatusIs(kBad, HasSubstr("i64 or i32")));
  EXPECT_THAT(Embedding(TestTensor({5}), ids), StatusIs(kBad));
  EXPECT_THAT(EmbeddingGrad(TestTensor({2, 2}), ids, 5), StatusIs(kBad));
  EXPECT_THAT(EmbeddingGrad(TestTensor({3, 2}), ids, -1), StatusIs(kBad));
  EXPECT_THAT(EmbeddingBag(weight, ids, Tensor::Zeros({1}, {DType::kI32}),
                           BagMode::kSum),
              StatusIs(kBad));
  EXPECT_THAT(EmbeddingBagGrad(TestTensor({2, 2}), ids, ids, Tensor(),
                               BagMode::kSum, 5),
              StatusIs(kBad));
}

}  // namespace
}  // namespace hawser::tensor
