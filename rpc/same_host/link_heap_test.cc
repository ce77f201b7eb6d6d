#include "rpc/same_host/link_heap.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/same_host/link_memory.h"
#include "tensor/memory/allocator.h"
#include "tensor/memory/storage.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;

class LinkHeapTest : public testing::Test {
 protected:
  void SetUp() override {
    auto created = LinkMemory::Create();
    ASSERT_THAT(created, IsOk());
    memory_ = std::move(created->first);
    heap_ = std::make_shared<LinkHeap>(memory_, half());
  }

  LinkHalf& half() { return memory_->layout().to_client; }

  std::shared_ptr<LinkMemory> memory_;
  std::shared_ptr<LinkHeap> heap_;
};

TEST_F(LinkHeapTest, StorageIsInTheHeapAndFreedWithItsLastHandle) {
  constexpr size_t kBytes = 100;
  tensor::StoragePtr first = heap_->AllocateStorage(kBytes);
  const tensor::StoragePtr second = heap_->AllocateStorage(kBytes);
  ASSERT_NE(first, nullptr);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(
      reinterpret_cast<uintptr_t>(first->data()) % tensor::kAllocationAlignment,
      0u);
  EXPECT_EQ(first->bytes(), kBytes);
  const auto* const data = static_cast<const char*>(first->data());
  const std::optional<size_t> offset = heap_->OffsetOf(data, kBytes);
  ASSERT_TRUE(offset.has_value());
  EXPECT_EQ(heap_->At(*offset), data);
  EXPECT_NE(first->data(), second->data());

  first = nullptr;
  first = heap_->AllocateStorage(kBytes);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->data(), data);
}

TEST_F(LinkHeapTest, StorageTakesAtMostHalfOfTheHeap) {
  constexpr size_t kBytes = size_t{512} << 10;
  std::vector<tensor::StoragePtr> all;
  while (tensor::StoragePtr storage = heap_->AllocateStorage(kBytes)) {
    all.push_back(std::move(storage));
  }
  EXPECT_EQ(all.size(), kHeapBytes / 2 / kBytes);
  EXPECT_TRUE(heap_->Allocate(kBytes).has_value());
  all.pop_back();
  EXPECT_NE(heap_->AllocateStorage(kBytes), nullptr);
  EXPECT_EQ(heap_->AllocateStorage(kHeapBytes), nullptr);
  EXPECT_EQ(heap_->AllocateStorage(~size_t{0} - 1000), nullptr);
}

TEST_F(LinkHeapTest, StorageOutlivesTheHeap) {
  const tensor::StoragePtr storage = heap_->AllocateStorage(8);
  ASSERT_NE(storage, nullptr);
  heap_ = nullptr;
  memory_ = nullptr;
  *static_cast<volatile char*>(storage->data()) = 1;
}

TEST_F(LinkHeapTest, AllocatesNothingAfterClose) {
  const std::optional<size_t> offset = heap_->Allocate(100);
  ASSERT_TRUE(offset.has_value());
  heap_->Close();
  heap_->Free(*offset, 100);
  EXPECT_FALSE(heap_->Allocate(100).has_value());
  EXPECT_EQ(heap_->AllocateStorage(100), nullptr);
}

TEST_F(LinkHeapTest, BytesOutsideOrAcrossTheEndHaveNoOffset) {
  const char* const begin = half().heap.data();
  const char other = 0;
  EXPECT_EQ(heap_->OffsetOf(&other, 1), std::nullopt);
  EXPECT_EQ(heap_->OffsetOf(begin, 1), std::nullopt) << "offset 0 is none";
  EXPECT_EQ(heap_->OffsetOf(begin + kHeapBegin, 1), kHeapBegin);
  EXPECT_EQ(heap_->OffsetOf(begin + kHeapBytes - 1, 1), kHeapBytes - 1);
  EXPECT_EQ(heap_->OffsetOf(begin + kHeapBytes - 1, 2), std::nullopt);
  EXPECT_EQ(heap_->OffsetOf(begin + kHeapBytes, 1), std::nullopt);
  EXPECT_EQ(
      heap_->OffsetOf(memory_->layout().to_server.heap.data() + kHeapBegin, 1),
      std::nullopt)
      << "the other direction";
}

}  // namespace
}  // namespace hawser::rpc
