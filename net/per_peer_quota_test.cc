#include "net/per_peer_quota.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::net {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

using Reservation = PerPeerQuota::Reservation;

// Matches a refusal of `peer` because of the option `limit`.
auto Exceeds(const std::string& peer, const std::string& limit) {
  return StatusIs(absl::StatusCode::kResourceExhausted,
                  AllOf(HasSubstr("worker '" + peer + "'"),
                        HasSubstr("the limit set by " + limit + ": ")));
}

class PerPeerQuotaTest : public testing::Test {
 protected:
  // Admits an item of `peer` and keeps its reservation.
  absl::Status Admit(const std::string& peer, size_t bytes = 0) {
    absl::StatusOr<Reservation> admitted = quota_->Admit(peer, bytes);
    if (!admitted.ok()) return admitted.status();
    reservations_.push_back(*std::move(admitted));
    return absl::OkStatus();
  }

  std::unique_ptr<PerPeerQuota> quota_ =
      std::make_unique<PerPeerQuota>(PerPeerQuota::Options{
          .items = "boxes",
          .advice = "return some",
          .items_in_total = {.max = 4, .option = "max_boxes"},
          .items_per_peer = {.max = 3, .option = "max_boxes_per_peer"},
          .bytes_in_total = {.max = 100, .option = "max_bytes"},
          .bytes_per_peer = {.max = 60, .option = "max_bytes_per_peer"}});
  std::vector<Reservation> reservations_;
};

TEST_F(PerPeerQuotaTest, FirstExceededLimitIsNamed) {
  EXPECT_THAT(Admit("a", 61), Exceeds("a", "max_bytes_per_peer"));
  EXPECT_THAT(Admit("a", 101), Exceeds("a", "max_bytes"));
  ASSERT_THAT(Admit("a", 60), IsOk());
  EXPECT_THAT(Admit("a", 1), Exceeds("a", "max_bytes_per_peer"));
  EXPECT_THAT(Admit("b", 41), Exceeds("b", "max_bytes"));
  ASSERT_THAT(Admit("b", 40), IsOk());
  ASSERT_THAT(Admit("b"), IsOk());
  ASSERT_THAT(Admit("b"), IsOk());
  EXPECT_THAT(Admit("b"), Exceeds("b", "max_boxes"));
  reservations_.erase(reservations_.begin());
  EXPECT_THAT(Admit("b"), Exceeds("b", "max_boxes_per_peer"));
  EXPECT_THAT(Admit("a", 60), IsOk());
}

TEST_F(PerPeerQuotaTest, RefusalsNameUsageLimitAndRemedy) {
  for (int i = 0; i < 3; ++i) ASSERT_THAT(Admit("a", 10), IsOk());
  EXPECT_EQ(Admit("a").message(),
            "worker 'a' has 3 boxes here, the limit set by max_boxes_per_peer: "
            "return some or raise the limit");
  EXPECT_EQ(Admit("b", 71).message(),
            "worker 'b' is refused: all workers together have boxes of 30 "
            "bytes here, and 71 bytes more would exceed 100, the limit set by "
            "max_bytes: return some or raise the limit");
  ASSERT_THAT(Admit("b", 10), IsOk());
  EXPECT_EQ(Admit("c").message(),
            "worker 'c' is refused: all workers together have 4 boxes here, "
            "the limit set by max_boxes: return some or raise the limit");
  reservations_.erase(reservations_.begin());
  EXPECT_EQ(Admit("a", 41).message(),
            "worker 'a' has boxes of 20 bytes here, and 41 bytes more would "
            "exceed 60, the limit set by max_bytes_per_peer: return some or "
            "raise the limit");
}

TEST_F(PerPeerQuotaTest, AHugeItemDoesNotWrap) {
  ASSERT_THAT(Admit("a", 1), IsOk());
  EXPECT_THAT(Admit("a", ~size_t{0}), Exceeds("a", "max_bytes"));
}

TEST_F(PerPeerQuotaTest, LimitsThatAreNotSetDoNotApply) {
  PerPeerQuota quota({.items = "boxes",
                      .advice = "return some",
                      .items_per_peer = {.max = 2, .option = "max_boxes"}});
  const auto first = quota.Admit("a", ~size_t{0});
  const auto second = quota.Admit("a", ~size_t{0});
  EXPECT_THAT(first, IsOk());
  EXPECT_THAT(second, IsOk());
  EXPECT_THAT(quota.Admit("a"), Exceeds("a", "max_boxes"));
}

TEST_F(PerPeerQuotaTest, BytesMayBeReleasedBeforeTheItem) {
  ASSERT_THAT(Admit("a", 60), IsOk());
  reservations_[0].ReleaseBytes();
  reservations_[0].ReleaseBytes();
  ASSERT_THAT(Admit("a", 60), IsOk());
  // The second release had no effect.
  EXPECT_THAT(Admit("a", 1), Exceeds("a", "max_bytes_per_peer"));
  ASSERT_THAT(Admit("a"), IsOk());
  EXPECT_THAT(Admit("a"), Exceeds("a", "max_boxes_per_peer"));
  reservations_.clear();
  ASSERT_THAT(Admit("a", 60), IsOk());
  EXPECT_THAT(Admit("b", 40), IsOk());
}

TEST_F(PerPeerQuotaTest, ReservationsGrowWithinTheLimits) {
  Reservation first = *quota_->Admit("a", 10);
  ASSERT_THAT(first.Resize(60), IsOk());
  EXPECT_THAT(first.Resize(61), Exceeds("a", "max_bytes_per_peer"));
  EXPECT_THAT(quota_->CheckRoom("a"), Exceeds("a", "max_bytes_per_peer"));
  EXPECT_THAT(quota_->CheckRoom("b"), IsOk());
  Reservation second = *quota_->Admit("b", 40);
  EXPECT_THAT(quota_->CheckRoom("c"), Exceeds("c", "max_bytes"));
  EXPECT_THAT(second.Resize(41), Exceeds("b", "max_bytes"));
  ASSERT_THAT(first.Resize(59), IsOk());
  EXPECT_THAT(quota_->CheckRoom("a"), IsOk());
  EXPECT_THAT(second.Resize(41), IsOk());
}

TEST_F(PerPeerQuotaTest, MovedReservationCountsOnce) {
  ASSERT_THAT(Admit("a", 60), IsOk());
  Reservation moved = std::move(reservations_[0]);
  EXPECT_FALSE(moved.empty());
  EXPECT_TRUE(reservations_[0].empty());
  reservations_[0].ReleaseBytes();
  reservations_.clear();
  EXPECT_EQ(quota_->num_items("a"), 1u);
  EXPECT_THAT(Admit("a", 1), Exceeds("a", "max_bytes_per_peer"));
  ASSERT_THAT(Admit("a"), IsOk());
  // Replaces one by the other.
  moved = std::move(reservations_[0]);
  EXPECT_EQ(quota_->num_items("a"), 1u);
  EXPECT_THAT(Admit("a", 60), IsOk());
}

TEST_F(PerPeerQuotaTest, PeersWithoutItemsUseNoMemory) {
  ASSERT_THAT(Admit("a"), IsOk());
  ASSERT_THAT(Admit("b", 60), IsOk());
  EXPECT_THAT(Admit("c", 61), Exceeds("c", "max_bytes"));
  EXPECT_EQ(quota_->num_peers(), 2u);
  reservations_.clear();
  EXPECT_EQ(quota_->num_peers(), 0u);
  EXPECT_EQ(quota_->num_items("a"), 0u);
}

TEST_F(PerPeerQuotaTest, ReservationsMayOutliveTheQuota) {
  ASSERT_THAT(Admit("a", 60), IsOk());
  quota_.reset();
  reservations_[0].ReleaseBytes();
  reservations_.clear();
}

}  // namespace
}  // namespace hawser::net
