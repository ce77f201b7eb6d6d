#include "tensor/io/dlpack.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::tensor {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

// A tensor exported by another framework; counts calls of its deleter.
class Lent {
 public:
  Lent(DlpackDataType dtype, std::vector<int64_t> shape,
       std::vector<int64_t> strides = {})
      : shape_(std::move(shape)), strides_(std::move(strides)) {
    managed_.dl_tensor = {
        .data = memory_,
        .device = {kDlpackCpu, 0},
        .ndim = static_cast<int32_t>(shape_.size()),
        .dtype = dtype,
        .shape = shape_.data(),
        .strides = strides_.empty() ? nullptr : strides_.data(),
        .byte_offset = 0,
    };
    managed_.manager_ctx = this;
    managed_.deleter = [](DlpackManagedTensor* self) {
      ++static_cast<Lent*>(self->manager_ctx)->deleted_;
    };
    for (int i = 0; i < 16; ++i) memory_[i] = static_cast<float>(i);
  }

  DlpackManagedTensor* managed() { return &managed_; }
  DlpackTensor& tensor() { return managed_.dl_tensor; }
  const float* memory() const { return memory_; }
  int deleted() const { return deleted_; }

 private:
  float memory_[16];
  std::vector<int64_t> shape_;
  std::vector<int64_t> strides_;
  DlpackManagedTensor managed_ = {};
  int deleted_ = 0;
};

constexpr DlpackDataType kFloat32 = {kDlpackFloat, 32, 1};

TEST(DlpackTest, ImportSharesMemoryAndReleasesItOnce) {
  Lent lent(kFloat32, {2, 3});
  {
    const auto tensor = FromDlpack(lent.managed());
    ASSERT_THAT(tensor, IsOk());
    EXPECT_EQ(tensor->raw_data(), lent.memory());
    EXPECT_EQ(tensor->dtype(), DType::kF32);
    EXPECT_TRUE(tensor->is_contiguous());
    EXPECT_THAT(tensor->ToVector<float>(), ElementsAre(0, 1, 2, 3, 4, 5));
    const Tensor view = *tensor->Select(0, 1);
    EXPECT_EQ(lent.deleted(), 0);
  }
  EXPECT_EQ(lent.deleted(), 1);
}

TEST(DlpackTest, ImportAcceptsStridesAndOffset) {
  Lent lent(kFloat32, {2, 3}, {1, 4});
  lent.tensor().byte_offset = 8;
  const auto tensor = FromDlpack(lent.managed());
  ASSERT_THAT(tensor, IsOk());
  EXPECT_THAT(tensor->ToVector<float>(), ElementsAre(2, 6, 10, 3, 7, 11));
}

TEST(DlpackTest, ImportAcceptsScalarEmptyAndPinnedTensors) {
  Lent scalar(kFloat32, {});
  EXPECT_EQ(*FromDlpack(scalar.managed())->item<float>(), 0);
  Lent empty(kFloat32, {3, 0});
  empty.tensor().data = nullptr;
  EXPECT_EQ(FromDlpack(empty.managed())->shape(), (Shape{3, 0}));
  EXPECT_EQ(empty.deleted(), 1);
  Lent pinned(kFloat32, {1});
  pinned.tensor().device = {kDlpackCudaHost, 0};
  EXPECT_EQ(FromDlpack(pinned.managed())->device(), kCpu);
  Lent without_deleter(kFloat32, {1});
  without_deleter.managed()->deleter = nullptr;
  EXPECT_THAT(FromDlpack(without_deleter.managed()), IsOk());
}

TEST(DlpackTest, ImportRejectsUnsupportedTensors) {
  EXPECT_THAT(FromDlpack(nullptr), StatusIs(kInvalid));
  const auto expect_refused = [](Lent& lent, const char* why) {
    EXPECT_THAT(FromDlpack(lent.managed()), StatusIs(kInvalid, HasSubstr(why)));
    EXPECT_EQ(lent.deleted(), 0) << why;
  };
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  Lent negative_dim(kFloat32, {2, -3});
  expect_refused(negative_dim, "negative dimension");
  Lent negative_stride(kFloat32, {2, 3}, {3, -1});
  expect_refused(negative_stride, "stride -1 of dimension 1");
  Lent huge(kFloat32, {kMax, kMax});
  expect_refused(huge, "int64");
  Lent huge_stride(kFloat32, {3}, {kMax / 2 + 1});
  expect_refused(huge_stride, "int64");
  Lent huge_bytes(kFloat32, {2}, {kMax / 2});
  expect_refused(huge_bytes, "int64");
  Lent rank(kFloat32, std::vector<int64_t>(17, 1));
  expect_refused(rank, "17 dimensions");
  Lent negative_rank(kFloat32, {});
  negative_rank.tensor().ndim = -1;
  expect_refused(negative_rank, "-1 dimensions");
  Lent lanes({kDlpackFloat, 32, 4}, {1});
  expect_refused(lanes, "4 lanes");
  Lent complex({5, 64, 1}, {1});
  expect_refused(complex, "code 5");
  Lent int8({kDlpackInt, 8, 1}, {1});
  expect_refused(int8, "8 bits");
  Lent null(kFloat32, {1});
  null.tensor().data = nullptr;
  expect_refused(null, "null");
  Lent no_shape(kFloat32, {1});
  no_shape.tensor().shape = nullptr;
  expect_refused(no_shape, "no shape");
  Lent unaligned(kFloat32, {1});
  unaligned.tensor().byte_offset = 2;
  expect_refused(unaligned, "aligned");
  Lent device(kFloat32, {1});
  device.tensor().device = {10, 0};
  expect_refused(device, "device type 10");
  Lent negative_device(kFloat32, {1});
  negative_device.tensor().device = {kDlpackCuda, -1};
  expect_refused(negative_device, "device type 2, index -1");
}

TEST(DlpackTest, ExportKeepsTheMemoryAlive) {
  DlpackManagedTensor* managed = nullptr;
  const void* data = nullptr;
  {
    const Tensor base = *Tensor::Arange(6).Reshape({2, 3});
    const Tensor view = *base.Slice(1, 1, 3)->T();
    data = view.raw_data();
    managed = *ToDlpack(view);
  }
  const DlpackTensor& tensor = managed->dl_tensor;
  EXPECT_EQ(tensor.data, data);
  EXPECT_EQ(tensor.device.device_type, kDlpackCpu);
  EXPECT_EQ(tensor.ndim, 2);
  EXPECT_EQ(tensor.shape[0], 2);
  EXPECT_EQ(tensor.shape[1], 2);
  EXPECT_EQ(tensor.strides[0], 1);
  EXPECT_EQ(tensor.strides[1], 3);
  EXPECT_EQ(static_cast<float*>(tensor.data)[3], 4);
  std::thread([&] { managed->deleter(managed); }).join();
  EXPECT_THAT(ToDlpack(Tensor()), StatusIs(kInvalid));
}

TEST(DlpackTest, EveryDTypeRoundTrips) {
  for (int i = 0; i < kNumDTypes; ++i) {
    const DType dtype = static_cast<DType>(i);
    const Tensor tensor = Tensor::Ones({3}, {.dtype = dtype});
    const auto back = FromDlpack(*ToDlpack(tensor));
    ASSERT_THAT(back, IsOk());
    EXPECT_EQ(back->dtype(), dtype);
    EXPECT_EQ(back->raw_data(), tensor.raw_data());
    EXPECT_EQ(tensor.storage()->use_count(), 2);
  }
}

}  // namespace
}  // namespace hawser::tensor
