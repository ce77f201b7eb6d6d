#include "rpc/peers/duplicate_filter.h"

#include <set>

#include "async/random_source.h"
#include "gtest/gtest.h"

namespace hawser::rpc {
namespace {

constexpr Incarnation kSender{1};
constexpr uint64_t kWindow = DuplicateFilter::kWindow;

TEST(DuplicateFilterTest, AcceptsEachNumberOncePerSender) {
  DuplicateFilter filter;
  EXPECT_TRUE(filter.FirstSeen(kSender, 1));
  EXPECT_FALSE(filter.FirstSeen(kSender, 1));
  EXPECT_TRUE(filter.FirstSeen(Incarnation{2}, 1));
}

TEST(DuplicateFilterTest, AcceptsNumbersThatWereOvertaken) {
  DuplicateFilter filter;
  EXPECT_TRUE(filter.FirstSeen(kSender, 10));
  EXPECT_TRUE(filter.FirstSeen(kSender, 3));
  EXPECT_FALSE(filter.FirstSeen(kSender, 3));
  EXPECT_FALSE(filter.FirstSeen(kSender, 10));
  EXPECT_TRUE(filter.FirstSeen(kSender, 9));
}

TEST(DuplicateFilterTest, NumbersBelowTheWindowCountAsSeen) {
  DuplicateFilter filter;
  EXPECT_TRUE(filter.FirstSeen(kSender, kWindow + 5));
  EXPECT_TRUE(filter.FirstSeen(kSender, 6));
  EXPECT_FALSE(filter.FirstSeen(kSender, 5));
  EXPECT_TRUE(filter.FirstSeen(kSender, 3 * kWindow));
  EXPECT_FALSE(filter.FirstSeen(kSender, kWindow + 5));
}

TEST(DuplicateFilterTest, ForgetsSenders) {
  DuplicateFilter filter;
  EXPECT_TRUE(filter.FirstSeen(kSender, 1));
  filter.Forget(kSender);
  EXPECT_TRUE(filter.FirstSeen(kSender, 1));
}

TEST(DuplicateFilterTest, EvictsTheLongestSilentSenderAboveALimit) {
  DuplicateFilter filter;
  const auto sender = [](uint64_t n) { return Incarnation{n + 1}; };
  for (uint64_t n = 0; n < DuplicateFilter::kMaxSenders; ++n) {
    EXPECT_TRUE(filter.FirstSeen(sender(n), 1));
  }
  // Active again, so that the second is the oldest.
  EXPECT_FALSE(filter.FirstSeen(sender(0), 1));
  EXPECT_TRUE(filter.FirstSeen(sender(DuplicateFilter::kMaxSenders), 1));
  EXPECT_FALSE(filter.FirstSeen(sender(0), 1));
  EXPECT_FALSE(filter.FirstSeen(sender(2), 1));
  EXPECT_TRUE(filter.FirstSeen(sender(1), 1));
}

TEST(DuplicateFilterTest, AgreesWithASetWhileNumbersStayInTheWindow) {
  DuplicateFilter filter;
  std::set<uint64_t> seen;
  async::RandomSource random(5);
  uint64_t base = 1;
  for (int i = 0; i < 100000; ++i) {
    base += random.Below(8);
    const uint64_t number = base + random.Below(kWindow / 2);
    EXPECT_EQ(filter.FirstSeen(kSender, number), seen.insert(number).second);
  }
}

}  // namespace
}  // namespace hawser::rpc
