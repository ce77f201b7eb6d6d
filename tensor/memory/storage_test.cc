#include "tensor/memory/storage.h"

#include <cstdint>
#include <utility>

#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensor/memory/device_allocators.h"

namespace hawser::tensor {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;

TEST(StorageTest, AllocatesAlignedBytes) {
  const auto storage = Storage::Allocate(1000, kCpu);
  ASSERT_THAT(storage, IsOk());
  EXPECT_EQ((*storage)->bytes(), 1000u);
  EXPECT_EQ((*storage)->device(), kCpu);
  EXPECT_EQ(
      reinterpret_cast<uintptr_t>((*storage)->data()) % kAllocationAlignment,
      0u);
}

TEST(StorageTest, MissingDeviceIsAnError) {
  EXPECT_THAT(
      Storage::Allocate(8, Cuda(63)),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("cuda:63")));
}

TEST(StorageTest, WrappedMemoryIsReleasedWithTheLastHandle) {
  float memory[4];
  int released = 0;
  StoragePtr a =
      Storage::Wrap(memory, sizeof(memory), kCpu, [&] { ++released; });
  EXPECT_EQ(a->data(), memory);
  StoragePtr b = a;
  const StoragePtr c = std::move(a);
  EXPECT_FALSE(a);  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(c->use_count(), 2);
  b = nullptr;
  EXPECT_EQ(released, 0);
  b = c;
  EXPECT_EQ(released, 0);
}

TEST(StorageTest, WrappedMemoryIsReleasedOnce) {
  int released = 0;
  {
    const StoragePtr a = Storage::Wrap(&released, 4, kCpu, [&] { ++released; });
  }
  EXPECT_EQ(released, 1);
}

TEST(StorageTest, VersionCountsBumps) {
  const StoragePtr storage = *Storage::Allocate(8, kCpu);
  const uint64_t before = storage->version();
  storage->BumpVersion();
  EXPECT_EQ(storage->version(), before + 1);
}

}  // namespace
}  // namespace hawser::tensor
