#include "ipc/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::ipc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;

constexpr size_t kBytes = 10'000;

TEST(SharedMemoryTest, MappingsShareTheirBytes) {
  auto created = SharedMemory::Create("hawser-test", kBytes);
  ASSERT_THAT(created, IsOk());
  SharedMemory& first = created->first;
  EXPECT_EQ(first.bytes(), kBytes);
  const char* const bytes = static_cast<const char*>(first.data());
  EXPECT_TRUE(
      std::all_of(bytes, bytes + kBytes, [](char byte) { return byte == 0; }));
  auto second = SharedMemory::Map(created->second, kBytes);
  ASSERT_THAT(second, IsOk());
  ASSERT_NE(second->data(), first.data());
  std::strcpy(static_cast<char*>(second->data()), "shared");
  EXPECT_STREQ(bytes, "shared");
}

TEST(SharedMemoryTest, MovedMappingStaysMapped) {
  auto created = SharedMemory::Create("hawser-test", kBytes);
  ASSERT_THAT(created, IsOk());
  void* const data = created->first.data();
  const SharedMemory moved = std::move(created->first);
  EXPECT_EQ(moved.data(), data);
  static_cast<char*>(moved.data())[kBytes - 1] = 1;
}

TEST(SharedMemoryTest, NoProcessCanResizeIt) {
  const auto created = SharedMemory::Create("hawser-test", kBytes);
  ASSERT_THAT(created, IsOk());
  EXPECT_NE(ftruncate(created->second.get(), 1), 0);
  EXPECT_NE(ftruncate(created->second.get(), 2 * kBytes), 0);
}

TEST(SharedMemoryTest, OtherSizesAreRefused) {
  const auto created = SharedMemory::Create("hawser-test", kBytes);
  ASSERT_THAT(created, IsOk());
  EXPECT_THAT(
      SharedMemory::Map(created->second, kBytes + 1).status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("10001 bytes")));
  EXPECT_THAT(SharedMemory::Create("hawser-test", 0).status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(SharedMemoryTest, MemoryThatCanBeResizedIsRefused) {
  const fs::UniqueFd unsealed(
      memfd_create("hawser-test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_TRUE(unsealed.valid());
  ASSERT_EQ(ftruncate(unsealed.get(), kBytes), 0);
  EXPECT_THAT(SharedMemory::Map(unsealed, kBytes).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("sealed against resizing")));
  const fs::UniqueFd pipe_like(open("/dev/null", O_RDWR | O_CLOEXEC));
  EXPECT_THAT(SharedMemory::Map(pipe_like, kBytes).status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace hawser::ipc
