#include "net/server/shared_quota.h"

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "gtest/gtest.h"

namespace hawser::net {
namespace {

using Reservation = SharedQuota::Reservation;
using Exceeded = SharedQuota::Exceeded;

class SharedQuotaTest : public testing::Test {
 protected:
  // Admits a call of `peer` and keeps its reservation; returns whether it was
  // admitted.
  bool Admit(const std::string& peer, size_t bytes) {
    auto admitted = quota_->Admit(peer, bytes);
    if (!std::holds_alternative<Reservation>(admitted)) return false;
    reservations_.push_back(std::get<Reservation>(std::move(admitted)));
    return true;
  }
  Exceeded Refusal(const std::string& peer, size_t bytes) {
    auto admitted = quota_->Admit(peer, bytes);
    EXPECT_TRUE(std::holds_alternative<Exceeded>(admitted));
    return std::get<Exceeded>(admitted);
  }

  std::shared_ptr<SharedQuota> quota_ =
      SharedQuota::Create({.max_calls = 4,
                           .max_calls_per_peer = 3,
                           .max_bytes = 100,
                           .max_bytes_per_peer = 60});
  std::vector<Reservation> reservations_;
};

TEST_F(SharedQuotaTest, ExceededLimitIsReturned) {
  EXPECT_EQ(Refusal("a", 61), Exceeded::kBytesPerPeer);
  EXPECT_EQ(Refusal("a", 101), Exceeded::kBytes);
  ASSERT_TRUE(Admit("a", 60));
  EXPECT_EQ(Refusal("a", 1), Exceeded::kBytesPerPeer);
  EXPECT_EQ(Refusal("b", 41), Exceeded::kBytes);
  ASSERT_TRUE(Admit("b", 40));
  ASSERT_TRUE(Admit("b", 0));
  ASSERT_TRUE(Admit("b", 0));
  EXPECT_EQ(Refusal("b", 0), Exceeded::kCalls);
  reservations_.erase(reservations_.begin());
  EXPECT_EQ(Refusal("b", 0), Exceeded::kCallsPerPeer);
  EXPECT_TRUE(Admit("a", 60));
}

TEST_F(SharedQuotaTest, AHugeCallDoesNotWrap) {
  ASSERT_TRUE(Admit("a", 1));
  EXPECT_EQ(Refusal("a", ~size_t{0}), Exceeded::kBytes);
}

TEST_F(SharedQuotaTest, BytesMayBeReleasedBeforeTheCall) {
  ASSERT_TRUE(Admit("a", 60));
  reservations_[0].ReleaseBytes();
  reservations_[0].ReleaseBytes();
  ASSERT_TRUE(Admit("a", 60));
  ASSERT_TRUE(Admit("a", 0));
  EXPECT_EQ(Refusal("a", 0), Exceeded::kCallsPerPeer);
  reservations_.clear();
  ASSERT_TRUE(Admit("a", 60));
  EXPECT_TRUE(Admit("b", 40));
}

TEST_F(SharedQuotaTest, MovedTicketCountsOnce) {
  ASSERT_TRUE(Admit("a", 60));
  Reservation moved = std::move(reservations_[0]);
  reservations_.clear();
  EXPECT_EQ(Refusal("a", 1), Exceeded::kBytesPerPeer);
  moved = Reservation();
  EXPECT_TRUE(Admit("a", 60));
}

TEST_F(SharedQuotaTest, TicketsMayOutliveIt) {
  ASSERT_TRUE(Admit("a", 60));
  const std::weak_ptr<SharedQuota> quota = quota_;
  quota_.reset();
  EXPECT_FALSE(quota.expired());
  reservations_.clear();
  EXPECT_TRUE(quota.expired());
}

}  // namespace
}  // namespace hawser::net
