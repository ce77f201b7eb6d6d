#include "ps/client/bytes_under_way.h"

#include <atomic>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::ps {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr absl::Duration kLong = absl::Seconds(100);

TEST(BytesUnderWayTest, RequestsWithinTheLimitDoNotWait) {
  BytesUnderWay under_way(100);
  EXPECT_THAT(under_way.Begin(60, absl::ZeroDuration()), IsOk());
  EXPECT_THAT(under_way.Begin(40, absl::ZeroDuration()), IsOk());
  EXPECT_THAT(under_way.Begin(1, absl::Milliseconds(1)),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("a request of 1 bytes"),
                             HasSubstr("requests of 100 bytes are under way, "
                                       "of at most 100"),
                             HasSubstr("max_bytes_under_way"))));
  under_way.End(40);
  EXPECT_EQ(under_way.bytes(), 60);
  EXPECT_THAT(under_way.Begin(40, absl::ZeroDuration()), IsOk());
}

TEST(BytesUnderWayTest, OneRequestMayBeLarger) {
  BytesUnderWay under_way(100);
  EXPECT_THAT(under_way.Begin(1000, absl::ZeroDuration()), IsOk());
  EXPECT_THAT(under_way.Begin(1, absl::Milliseconds(1)),
              StatusIs(absl::StatusCode::kResourceExhausted));
  under_way.End(1000);
  EXPECT_THAT(under_way.Begin(1, absl::ZeroDuration()), IsOk());
  EXPECT_THAT(under_way.Begin(1000, absl::Milliseconds(1)),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST(HeldBytesTest, AreCountedUntilTheObjectIsDestroyedOrReplaced) {
  const auto under_way = std::make_shared<BytesUnderWay>(100);
  absl::StatusOr<HeldBytes> large =
      HeldBytes::Begin(under_way, 70, absl::ZeroDuration());
  ASSERT_THAT(large, IsOk());
  EXPECT_THAT(HeldBytes::Begin(under_way, 40, absl::Milliseconds(1)).status(),
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(under_way->bytes(), 70);
  {
    const HeldBytes moved = *std::move(large);
    EXPECT_EQ(under_way->bytes(), 70);
  }
  EXPECT_EQ(under_way->bytes(), 0);
  absl::StatusOr<HeldBytes> small =
      HeldBytes::Begin(under_way, 30, absl::ZeroDuration());
  ASSERT_THAT(small, IsOk());
  *small = HeldBytes();
  EXPECT_EQ(under_way->bytes(), 0);
}

// A large request is not overtaken by small ones for ever.
TEST(BytesUnderWayTest, CallersGoOnInTheirOrder) {
  BytesUnderWay under_way(100);
  ASSERT_THAT(under_way.Begin(60, kLong), IsOk());
  absl::Notification large_is_under_way;
  std::thread large([&] {
    EXPECT_THAT(under_way.Begin(100, kLong), IsOk());
    large_is_under_way.Notify();
  });
  // Until the large one waits, small ones pass.
  while (under_way.Begin(10, absl::ZeroDuration()).ok()) {
    under_way.End(10);
  }
  EXPECT_FALSE(large_is_under_way.HasBeenNotified());
  under_way.End(60);
  large_is_under_way.WaitForNotification();
  EXPECT_EQ(under_way.bytes(), 100);
  under_way.End(100);
  large.join();
}

TEST(BytesUnderWayTest, AWaiterThatGivesUpLetsTheNextOneGo) {
  BytesUnderWay under_way(100);
  ASSERT_THAT(under_way.Begin(60, kLong), IsOk());
  std::thread large([&] {
    EXPECT_THAT(under_way.Begin(100, absl::Milliseconds(200)),
                StatusIs(absl::StatusCode::kResourceExhausted));
  });
  while (under_way.Begin(10, absl::ZeroDuration()).ok()) {
    under_way.End(10);
  }
  // Behind the large one, and within the limit without it.
  EXPECT_THAT(under_way.Begin(40, kLong), IsOk());
  large.join();
  EXPECT_EQ(under_way.bytes(), 100);
}

TEST(BytesUnderWayTest, ThreadsStayWithinTheLimit) {
  constexpr int kThreads = 8;
  constexpr int64_t kBytes = 30;
  BytesUnderWay under_way(100);
  std::atomic<int64_t> used{0};
  std::atomic<int64_t> most{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 2000; ++round) {
        ASSERT_THAT(under_way.Begin(kBytes, kLong), IsOk());
        const int64_t now = used.fetch_add(kBytes) + kBytes;
        int64_t before = most.load();
        while (before < now && !most.compare_exchange_weak(before, now)) {
        }
        used.fetch_sub(kBytes);
        under_way.End(kBytes);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(most.load(), 90);
  EXPECT_EQ(under_way.bytes(), 0);
}

}  // namespace
}  // namespace hawser::ps
