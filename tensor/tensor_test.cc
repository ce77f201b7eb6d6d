#include "tensor/tensor.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <sstream>
#include <thread>
#include <utility>
#include <vector>

#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensor/recording_mode.h"

namespace hawser::tensor {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

static_assert(sizeof(Tensor) == sizeof(void*));

TEST(TensorTest, FactoriesFill) {
  const Tensor zeros = Tensor::Zeros({2, 3});
  EXPECT_EQ(zeros.dtype(), DType::kF32);
  EXPECT_EQ(zeros.device(), kCpu);
  EXPECT_EQ(zeros.shape(), (Shape{2, 3}));
  EXPECT_EQ(zeros.strides(), (Strides{3, 1}));
  EXPECT_EQ(zeros.rank(), 2);
  EXPECT_EQ(zeros.dim(-1), 3);
  EXPECT_EQ(zeros.num_elements(), 6);
  EXPECT_EQ(zeros.byte_size(), 24);
  EXPECT_TRUE(zeros.is_contiguous());
  EXPECT_THAT(zeros.ToVector<float>(), AllOf(SizeIs(6), Each(0.0f)));
  EXPECT_THAT(Tensor::Ones({3}, {.dtype = DType::kBool}).ToVector<bool>(),
              ElementsAre(true, true, true));
  EXPECT_THAT(
      Tensor::Full({2}, -2.5, {.dtype = DType::kF64}).ToVector<double>(),
      ElementsAre(-2.5, -2.5));
  EXPECT_THAT(Tensor::Full({1}, 300, {.dtype = DType::kU8}).ToVector<uint8_t>(),
              ElementsAre(255));
  EXPECT_THAT(Tensor::Arange(4, {.dtype = DType::kI64}).ToVector<int64_t>(),
              ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(Tensor::Arange(0).ToVector<float>(), ElementsAre());
  EXPECT_EQ(Tensor::Scalar(7).rank(), 0);
  EXPECT_EQ(Tensor::Empty({5, 0}).num_elements(), 0);
  EXPECT_THAT(Tensor::FromVector<float>({1, 2, 3, 4}, {2, 2}).ToVector<float>(),
              ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(
      Tensor::FromVector(std::vector<bool>{true, false}, {2}).ToVector<bool>(),
      ElementsAre(true, false));
}

TEST(TensorTest, EveryDTypeFillsAndReads) {
  for (int i = 0; i < kNumDTypes; ++i) {
    const DType dtype = static_cast<DType>(i);
    const Tensor ones = Tensor::Ones({3}, {.dtype = dtype});
    EXPECT_THAT(ones.Select(0, 1)->item<double>(), IsOkAndHolds(1.0));
    EXPECT_THAT(Tensor::Zeros({}, {.dtype = dtype}).item<int64_t>(),
                IsOkAndHolds(0));
  }
}

TEST(TensorTest, HandlesShareOneTensor) {
  Tensor a = Tensor::Zeros({2});
  const Tensor b = a;
  EXPECT_TRUE(a.is_same(b));
  EXPECT_EQ(a.id(), b.id());
  a.data<float>()[1] = 5;
  EXPECT_THAT(b.ToVector<float>(), ElementsAre(0, 5));
  const Tensor c = Tensor::Zeros({2});
  EXPECT_FALSE(a.is_same(c));
  EXPECT_NE(a.id(), c.id());
  const Tensor d = std::move(a);
  EXPECT_FALSE(a.defined());  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(d.id(), b.id());
}

TEST(TensorTest, UndefinedTensorGivesStatuses) {
  Tensor none;
  EXPECT_FALSE(none.defined());
  EXPECT_EQ(none.id(), 0u);
  EXPECT_TRUE(none.is_same(Tensor()));
  EXPECT_EQ(none.DebugString(), "undefined tensor");
  EXPECT_THAT(none.Reshape({1}), StatusIs(kInvalid, HasSubstr("undefined")));
  EXPECT_THAT(none.View({1}), StatusIs(kInvalid));
  EXPECT_THAT(none.Transpose(0, 1), StatusIs(kInvalid));
  EXPECT_THAT(none.T(), StatusIs(kInvalid));
  EXPECT_THAT(none.Permute({}), StatusIs(kInvalid));
  EXPECT_THAT(none.Slice(0, 0, 1), StatusIs(kInvalid));
  EXPECT_THAT(none.Select(0, 0), StatusIs(kInvalid));
  EXPECT_THAT(none.Narrow(0, 0, 0), StatusIs(kInvalid));
  EXPECT_THAT(none.Expand({1}), StatusIs(kInvalid));
  EXPECT_THAT(none.Squeeze(), StatusIs(kInvalid));
  EXPECT_THAT(none.Squeeze(0), StatusIs(kInvalid));
  EXPECT_THAT(none.Unsqueeze(0), StatusIs(kInvalid));
  EXPECT_THAT(none.Contiguous(), StatusIs(kInvalid));
  EXPECT_THAT(none.Clone(), StatusIs(kInvalid));
  EXPECT_THAT(none.To(DType::kF32), StatusIs(kInvalid));
  EXPECT_THAT(none.To(kCpu), StatusIs(kInvalid));
  EXPECT_THAT(none.item<float>(), StatusIs(kInvalid));
  EXPECT_THAT(none.CopyFrom(Tensor::Zeros({})), StatusIs(kInvalid));
  EXPECT_THAT(Tensor::Zeros({}).CopyFrom(none), StatusIs(kInvalid));
}

TEST(TensorTest, ItemConvertsTheOnlyElement) {
  EXPECT_THAT(Tensor::Scalar(2.75).item<float>(), IsOkAndHolds(2.75f));
  EXPECT_THAT(Tensor::Scalar(2.75, {.dtype = DType::kBF16}).item<double>(),
              IsOkAndHolds(2.75));
  EXPECT_THAT(Tensor::Scalar(2.75).item<int32_t>(), IsOkAndHolds(2));
  EXPECT_THAT(Tensor::Ones({1, 1}).item<bool>(), IsOkAndHolds(true));
  EXPECT_THAT(Tensor::Ones({2}).item<float>(),
              StatusIs(kInvalid, HasSubstr("f32[2]")));
  EXPECT_THAT(Tensor::Ones({0}).item<float>(), StatusIs(kInvalid));
}

TEST(TensorTest, TryEmptyRefusesImpossibleSizes) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(Tensor::TryEmpty({-1}), StatusIs(kInvalid, HasSubstr("[-1]")));
  EXPECT_THAT(Tensor::TryEmpty({kMax, 2}), StatusIs(kInvalid));
  EXPECT_THAT(Tensor::TryEmpty({kMax}), StatusIs(kInvalid, HasSubstr("bytes")));
  EXPECT_THAT(Tensor::TryEmpty({int64_t{1} << 55}),
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(Tensor::TryEmpty({2}, {.device = Cuda(63)}),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(Tensor::Zeros({2}).To(Cuda(63)),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST(TensorTest, FromStorageChecksBounds) {
  const StoragePtr storage = *Storage::Allocate(10 * sizeof(float), kCpu);
  const auto make = [&](int64_t offset, const Shape& shape,
                        const Strides& strides) {
    return Tensor::FromStorage(storage, offset, shape, strides, DType::kF32);
  };
  const auto whole = make(0, {2, 5}, {5, 1});
  ASSERT_THAT(whole, IsOk());
  EXPECT_EQ(whole->storage(), storage);
  EXPECT_THAT(make(4, {2, 2}, {4, 1}), IsOk());
  EXPECT_EQ(make(4, {2, 2}, {4, 1})->storage_offset(), 4);
  EXPECT_THAT(make(10, {0}, {1}), IsOk());
  EXPECT_THAT(make(5, {2, 2}, {4, 1}),
              StatusIs(kInvalid, HasSubstr("storage of 10 elements")));
  EXPECT_THAT(make(11, {0}, {1}), StatusIs(kInvalid));
  EXPECT_THAT(make(-1, {1}, {1}), StatusIs(kInvalid));
  EXPECT_THAT(make(0, {2}, {-1}), StatusIs(kInvalid, HasSubstr("negative")));
  EXPECT_THAT(make(0, {2, 2}, {1}), StatusIs(kInvalid, HasSubstr("ranks")));
  EXPECT_THAT(make(0, {-2}, {1}), StatusIs(kInvalid));
  EXPECT_THAT(make(0, {3}, {int64_t{1} << 62}), StatusIs(kInvalid));
  EXPECT_THAT(make(int64_t{1} << 62, {3}, {int64_t{1} << 61}),
              StatusIs(kInvalid));
  EXPECT_THAT(Tensor::FromStorage(nullptr, 0, {}, {}, DType::kF32),
              StatusIs(kInvalid));
}

TEST(TensorDeathTest, MisuseAborts) {
  EXPECT_DEATH(Tensor().shape(), "undefined tensor");
  EXPECT_DEATH(Tensor::Zeros({2}).data<double>(), "f32\\[2\\] on cpu as f64");
  EXPECT_DEATH(Tensor::Zeros({2}).ToVector<int32_t>(), "as i32");
  EXPECT_DEATH(Tensor::Zeros({-2}), "negative");
  EXPECT_DEATH(Tensor::FromVector<float>({1, 2, 3}, {2}), "3 values for");
}

TEST(TensorTest, ViewsShareTheVersion) {
  Tensor a = Tensor::Zeros({2, 2});
  const Tensor view = *a.T();
  const Tensor copy = *a.Clone();
  const uint64_t before = view.version();
  a.BumpVersion();
  EXPECT_EQ(view.version(), before + 1);
  ASSERT_THAT(a.CopyFrom(Tensor::Ones({2, 2})), IsOk());
  EXPECT_EQ(view.version(), before + 2);
  EXPECT_EQ(copy.version(), 0u);
}

class TestMeta : public AutogradMeta {
 public:
  explicit TestMeta(int* destroyed) : destroyed_(destroyed) {}
  ~TestMeta() override { ++*destroyed_; }

 private:
  int* const destroyed_;
};

TEST(TensorTest, AutogradMetaBelongsToTheTensorNotToItsViews) {
  int destroyed = 0;
  {
    const Tensor a = Tensor::Zeros({2});
    EXPECT_EQ(a.autograd_meta(), nullptr);
    a.set_autograd_meta(std::make_unique<TestMeta>(&destroyed));
    EXPECT_NE(a.autograd_meta(), nullptr);
    EXPECT_EQ(Tensor(a).autograd_meta(), a.autograd_meta());
    EXPECT_EQ(a.Detach().autograd_meta(), nullptr);
    EXPECT_EQ(a.Detach().raw_data(), a.raw_data());
    EXPECT_FALSE(a.Detach().is_same(a));
    EXPECT_THAT(a.Reshape({2, 1}),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         HasSubstr("autograd::Reshape")));
    {
      const RecordingModeScope off(RecordingMode::kOff);
      EXPECT_EQ(a.Reshape({2, 1})->autograd_meta(), nullptr);
    }
    a.set_autograd_meta(std::make_unique<TestMeta>(&destroyed));
    EXPECT_EQ(destroyed, 1);
  }
  EXPECT_EQ(destroyed, 2);
}

TEST(TensorTest, FirstEmplacedAutogradMetaStays) {
  int destroyed = 0;
  const Tensor a = Tensor::Zeros({2});
  AutogradMeta* const first =
      a.EmplaceAutogradMeta(std::make_unique<TestMeta>(&destroyed));
  EXPECT_EQ(a.autograd_meta(), first);
  EXPECT_EQ(a.EmplaceAutogradMeta(std::make_unique<TestMeta>(&destroyed)),
            first);
  EXPECT_EQ(destroyed, 1);
}

TEST(TensorTest, IdIsTheSameFromEveryThread) {
  const Tensor tensor = Tensor::Zeros({1});
  uint64_t ids[4];
  std::vector<std::thread> threads;
  for (uint64_t& id : ids) {
    threads.emplace_back([&id, tensor] { id = tensor.id(); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(ids, Each(tensor.id()));
}

TEST(TensorTest, TextNamesDTypeShapeAndDevice) {
  EXPECT_EQ(Tensor::Zeros({2, 3}, {.dtype = DType::kBF16}).ToString(),
            "bf16[2, 3] on cpu");
  std::ostringstream out;
  out << Tensor::FromVector<float>({1, 2.5}, {2});
  EXPECT_EQ(out.str(), "f32[2] on cpu {1, 2.5}");
  EXPECT_EQ(Tensor::Zeros({100}).DebugString(), "f32[100] on cpu");
}

}  // namespace
}  // namespace hawser::tensor
