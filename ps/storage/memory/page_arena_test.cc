#include "ps/storage/memory/page_arena.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tensor/memory/huge_pages.h"

namespace hawser::ps {
namespace {

using tensor::kHugePageBytes;
using tensor::kPageBytes;

bool IsZero(const std::byte* memory, size_t bytes) {
  return std::all_of(memory, memory + bytes,
                     [](std::byte b) { return b == std::byte{0}; });
}

TEST(PageArenaTest, BlocksLieSideBySideAtAHugePage) {
  PageArena arena;
  std::byte* const first = arena.Allocate(3 * kPageBytes);
  std::byte* const second = arena.Allocate(5 * kPageBytes);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % kHugePageBytes, 0u);
  EXPECT_EQ(second, first + 3 * kPageBytes);
  EXPECT_EQ(arena.mapped_bytes(), PageArena::kRegion);
  arena.Free(first, 3 * kPageBytes);
  arena.Free(second, 5 * kPageBytes);
  EXPECT_EQ(arena.mapped_bytes(), 0u);
}

TEST(PageArenaTest, FreedMemoryIsJoinedZeroedAndUsedAgain) {
  PageArena arena;
  std::vector<std::byte*> blocks;
  for (int i = 0; i < 4; ++i) {
    blocks.push_back(arena.Allocate(kPageBytes));
    std::memset(blocks.back(), 1, kPageBytes);
  }
  // The second joins both of its neighbours.
  arena.Free(blocks[0], kPageBytes);
  arena.Free(blocks[2], kPageBytes);
  arena.Free(blocks[1], kPageBytes);
  std::byte* const joined = arena.Allocate(3 * kPageBytes);
  EXPECT_EQ(joined, blocks[0]);
  EXPECT_TRUE(IsZero(joined, 3 * kPageBytes));
  arena.Free(joined, 3 * kPageBytes);
  arena.Free(blocks[3], kPageBytes);
  EXPECT_EQ(arena.mapped_bytes(), 0u);
}

TEST(PageArenaTest, ABlockThatDoesNotFitBeginsARegion) {
  PageArena arena;
  std::byte* const first = arena.Allocate(kPageBytes);
  std::byte* const whole = arena.Allocate(PageArena::kRegion);
  EXPECT_EQ(arena.mapped_bytes(), 2 * PageArena::kRegion);
  arena.Free(whole, PageArena::kRegion);
  EXPECT_EQ(arena.mapped_bytes(), PageArena::kRegion);
  arena.Free(first, kPageBytes);
}

// Random blocks, each filled with its number while it is in use.
TEST(PageArenaTest, BlocksNeverOverlap) {
  std::mt19937_64 random(3);
  PageArena arena;
  struct Block {
    std::byte* memory;
    size_t bytes;
    std::byte content;
  };
  std::vector<Block> blocks;
  for (int i = 0; i < 3000; ++i) {
    if (blocks.size() > 40 || (!blocks.empty() && random() % 3 == 0)) {
      const size_t index = random() % blocks.size();
      const Block block = blocks[index];
      for (size_t at = 0; at < block.bytes; at += kPageBytes) {
        ASSERT_EQ(block.memory[at], block.content);
        ASSERT_EQ(block.memory[at + kPageBytes - 1], block.content);
      }
      arena.Free(block.memory, block.bytes);
      blocks[index] = blocks.back();
      blocks.pop_back();
      continue;
    }
    const size_t bytes = (1 + random() % 400) * kPageBytes;
    std::byte* const memory = arena.Allocate(bytes);
    ASSERT_NE(memory, nullptr);
    ASSERT_TRUE(IsZero(memory, bytes));
    const auto content = static_cast<std::byte>(1 + i % 255);
    std::memset(memory, static_cast<int>(content), bytes);
    blocks.push_back({memory, bytes, content});
  }
  EXPECT_LE(arena.mapped_bytes(), 4 * PageArena::kRegion);
  for (const Block& block : blocks) arena.Free(block.memory, block.bytes);
  EXPECT_EQ(arena.mapped_bytes(), 0u);
}

TEST(PageArenaTest, ThreadsShareIt) {
  PageArena arena;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        std::byte* const memory = arena.Allocate(2 * kPageBytes);
        EXPECT_TRUE(IsZero(memory, 2 * kPageBytes));
        std::memset(memory, 1, 2 * kPageBytes);
        arena.Free(memory, 2 * kPageBytes);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(arena.mapped_bytes(), 0u);
}

}  // namespace
}  // namespace hawser::ps
