#include "rpc/peers/duplicate_filter.h"

#include <set>
#include <string>

#include "async/random_source.h"
#include "gtest/gtest.h"
#include "rpc/identity/worker_info.h"

namespace hawser::rpc {
namespace {

WorkerInfo Member(uint64_t n) {
  return {.name = "w" + std::to_string(n),
          .id = WorkerId(static_cast<int32_t>(n)),
          .incarnation = Incarnation{n},
          .address = ""};
}
WorkerInfo Client(const std::string& name, uint64_t incarnation) {
  return {.name = name,
          .id = WorkerId(),
          .incarnation = Incarnation{incarnation},
          .address = ""};
}

const WorkerInfo kSender = Member(1);
constexpr uint64_t kWindow = DuplicateFilter::kWindow;

TEST(DuplicateFilterTest, AcceptsEachNumberOncePerSender) {
  DuplicateFilter filter;
  EXPECT_TRUE(filter.FirstSeen(kSender, 1));
  EXPECT_FALSE(filter.FirstSeen(kSender, 1));
  EXPECT_TRUE(filter.FirstSeen(Member(2), 1));
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
  filter.Forget(kSender.incarnation);
  EXPECT_TRUE(filter.FirstSeen(kSender, 1));
}

TEST(DuplicateFilterTest, EvictsTheLongestSilentMemberAboveALimit) {
  DuplicateFilter filter;
  for (uint64_t n = 0; n < DuplicateFilter::kMaxMembers; ++n) {
    EXPECT_TRUE(filter.FirstSeen(Member(n), 1));
  }
  // Active again, so that the second is the oldest.
  EXPECT_FALSE(filter.FirstSeen(Member(0), 1));
  EXPECT_TRUE(filter.FirstSeen(Member(DuplicateFilter::kMaxMembers), 1));
  EXPECT_FALSE(filter.FirstSeen(Member(0), 1));
  EXPECT_FALSE(filter.FirstSeen(Member(2), 1));
  EXPECT_TRUE(filter.FirstSeen(Member(1), 1));
}

// They may claim any incarnation.
TEST(DuplicateFilterTest, OthersTakeNothingFromMembers) {
  DuplicateFilter filter;
  EXPECT_TRUE(filter.FirstSeen(kSender, 1));
  for (uint64_t n = 0; n < 2 * DuplicateFilter::kMaxMembers; ++n) {
    EXPECT_TRUE(filter.FirstSeen(Client("c", n + 1), 10 * kWindow));
  }
  EXPECT_EQ(filter.num_senders(), 1 + DuplicateFilter::kMaxOthers);
  EXPECT_FALSE(filter.FirstSeen(kSender, 1));
  EXPECT_TRUE(filter.FirstSeen(kSender, 2));
}

TEST(DuplicateFilterTest, OthersOfDifferentNamesAreDifferent) {
  DuplicateFilter filter;
  EXPECT_TRUE(filter.FirstSeen(Client("c", 7), 1));
  EXPECT_FALSE(filter.FirstSeen(Client("c", 7), 1));
  EXPECT_TRUE(filter.FirstSeen(Client("d", 7), 1));
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
