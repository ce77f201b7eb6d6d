#include "ps/storage/pushes/inherited_pushes.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps/storage/key_batch.h"
#include "ps/storage/key_hash.h"
#include "ps/storage/push_window.h"
#include "rpc/identity/worker_info.h"

namespace hawser::ps {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kShards = 4;
constexpr rpc::Incarnation kClient{1};

// One key for each shard.
std::vector<uint64_t> KeysOfShards() {
  std::vector<uint64_t> keys;
  for (int64_t shard = 0; shard < kShards; ++shard) {
    keys.push_back(KeyOfChunk(shard, kShards));
  }
  return keys;
}

PushWindow WindowOf(const std::vector<uint64_t>& sequences) {
  PushWindow window;
  for (const uint64_t sequence : sequences) window.Add(sequence);
  return window;
}

class InheritedPushesTest : public testing::Test {
 protected:
  // The shards whose rows do not contain the push.
  std::vector<size_t> Left(uint64_t sequence,
                           rpc::Incarnation client = kClient) {
    const auto left =
        pushes_.WithoutApplied({keys_.data(), keys_.size()}, client, sequence);
    EXPECT_THAT(left, IsOk());
    std::vector<size_t> shards;
    for (size_t i = 0; left.ok() && i < left->count; ++i) {
      shards.push_back(left->position(i));
    }
    return shards;
  }

  const std::vector<uint64_t> keys_ = KeysOfShards();
  InheritedPushes pushes_{kShards};
};

TEST_F(InheritedPushesTest, EachShardContainsThePushesOfItsRanges) {
  pushes_.Add({1, 2, {{kClient, WindowOf({1, 3})}}});
  pushes_.Add({2, 2, {{kClient, WindowOf({2})}}});
  EXPECT_THAT(Left(1), ElementsAre(0, 3));
  EXPECT_THAT(Left(2), ElementsAre(0, 1));
  EXPECT_THAT(Left(3), ElementsAre(0, 3));
  EXPECT_THAT(Left(4), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(Left(1, rpc::Incarnation{2}), ElementsAre(0, 1, 2, 3));
}

TEST_F(InheritedPushesTest, ABatchMayBeAPartOfItsKeys) {
  pushes_.Add({1, 1, {{kClient, WindowOf({1})}}});
  const uint32_t positions[] = {3, 1};
  const auto left = pushes_.WithoutApplied({keys_.data(), 2, positions},
                                           kClient, /*sequence=*/1);
  ASSERT_THAT(left, IsOk());
  ASSERT_EQ(left->count, 1u);
  EXPECT_EQ(left->position(0), 3u);
}

TEST_F(InheritedPushesTest, AnOldPushIsRefused) {
  pushes_.Add({0, 1, {{kClient, WindowOf({PushWindow::kDepth + 1})}}});
  EXPECT_THAT(pushes_.WithoutApplied({keys_.data(), keys_.size()}, kClient, 1),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  // Only where it may have been applied.
  EXPECT_THAT(pushes_.WithoutApplied({&keys_[1], 3}, kClient, 1), IsOk());
}

TEST_F(InheritedPushesTest, AClientIsForgotten) {
  pushes_.Add({0, 4, {{kClient, WindowOf({1})}}});
  EXPECT_THAT(Left(1), IsEmpty());
  pushes_.Forget(kClient);
  EXPECT_THAT(Left(1), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(pushes_.ranges(), IsEmpty());
}

}  // namespace
}  // namespace hawser::ps
