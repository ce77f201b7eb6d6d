#include "rpc/same_host/incoming_region.h"

#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>

#include "async/testing/status_matchers.h"
#include "gtest/gtest.h"
#include "rpc/same_host/link_memory.h"
#include "tensor/memory/storage.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;

class IncomingRegionTest : public testing::Test {
 protected:
  void SetUp() override {
    auto created = LinkMemory::Create();
    ASSERT_THAT(created, IsOk());
    memory_ = std::move(created->first);
    region_ = std::make_shared<IncomingRegion>(
        memory_, nullptr, nullptr, memory_->layout().to_client, 0, 0);
  }

  std::shared_ptr<LinkMemory> memory_;
  std::shared_ptr<IncomingRegion> region_;
};

TEST_F(IncomingRegionTest, ChunkOfTheHeapInPlaceKeepsItsRegion) {
  bool ended = false;
  region_->AtEnd([&ended] { ended = true; });
  char* const data = region_->HeapAt(128);
  std::memcpy(data, "content", 8);
  tensor::StoragePtr storage = HeapChunk(region_, 128).InPlace(0, 8);
  ASSERT_NE(storage, nullptr);
  EXPECT_EQ(storage->data(), data);
  EXPECT_EQ(storage->bytes(), 8u);
  region_ = nullptr;
  memory_ = nullptr;
  EXPECT_FALSE(ended);
  EXPECT_STREQ(static_cast<const char*>(storage->data()), "content");
  storage = nullptr;
  EXPECT_TRUE(ended);
}

// A faulty peer may name any offset.
TEST_F(IncomingRegionTest, OnlyAlignedChunksAreUsedInPlace) {
  for (const size_t offset : {size_t{129}, size_t{132}, size_t{160}}) {
    EXPECT_EQ(HeapChunk(region_, offset).InPlace(0, 64), nullptr);
  }
  const HeapChunk chunk(region_, 128);
  EXPECT_EQ(chunk.InPlace(4, 64), nullptr);
  EXPECT_NE(chunk.InPlace(64, 64), nullptr);
}

}  // namespace
}  // namespace hawser::rpc
