#include "rref/control_channel.h"

#include <cstdint>
#include <optional>
#include <vector>

#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::rref {
namespace {

using async::IsOk;
using async::StatusIs;

constexpr rpc::WorkerRun kPeer{rpc::WorkerId(1), rpc::Incarnation{101}};
constexpr rpc::WorkerRun kOtherPeer{rpc::WorkerId(2), rpc::Incarnation{102}};

v1::RRefControlOperation Operation(uint64_t number) {
  v1::RRefControlOperation operation;
  operation.mutable_child_accept()->mutable_fork()->set_number(number);
  return operation;
}

class ControlChannelTest : public testing::Test {
 protected:
  absl::StatusOr<v1::RRefControlReply> Receive(
      const v1::RRefControlRequest& request) {
    return receiver_.Receive(
        kPeer, request, [this](const v1::RRefControlOperation& operation) {
          applied_.push_back(operation.child_accept().fork().number());
          v1::RRefControlResult result;
          result.set_code(static_cast<int32_t>(applied_.back()));
          return result;
        });
  }

  ControlSender sender_;
  ControlReceiver receiver_;
  std::vector<uint64_t> applied_;
};

TEST_F(ControlChannelTest, ForgottenPeerStartsAgainAtTheFirstNumber) {
  sender_.Add(kPeer, Operation(1));
  ASSERT_TRUE(sender_.NextBatch(kPeer).has_value());
  sender_.Add(kPeer, Operation(2));
  sender_.Forget(kPeer);
  EXPECT_EQ(sender_.pending(), 0u);
  sender_.Add(kPeer, Operation(3));
  const auto batch = sender_.NextBatch(kPeer);
  ASSERT_TRUE(batch.has_value());
  EXPECT_EQ(batch->first_sequence(), 1u);
  EXPECT_THAT(Receive(*batch), IsOk());
  EXPECT_THAT(applied_, testing::ElementsAre(3));
}

TEST_F(ControlChannelTest, OneBatchPerPeerIsInFlight) {
  sender_.Add(kPeer, Operation(1));
  sender_.Add(kPeer, Operation(2));
  sender_.Add(kOtherPeer, Operation(3));
  auto first = sender_.NextBatch(kPeer);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->operations_size(), 2);
  EXPECT_EQ(first->first_sequence(), 1u);
  sender_.Add(kPeer, Operation(4));
  EXPECT_FALSE(sender_.NextBatch(kPeer).has_value());
  EXPECT_TRUE(sender_.NextBatch(kOtherPeer).has_value());
  sender_.Finish(kPeer);
  auto second = sender_.NextBatch(kPeer);
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->first_sequence(), 3u);
  EXPECT_EQ(sender_.pending(), 2u);
}

TEST_F(ControlChannelTest, RepeatedBatchIsAppliedOnceAndGetsTheSameReply) {
  sender_.Add(kPeer, Operation(5));
  const auto batch = sender_.NextBatch(kPeer);
  auto first = Receive(*batch);
  auto second = Receive(*batch);
  ASSERT_THAT(first, IsOk());
  ASSERT_THAT(second, IsOk());
  EXPECT_THAT(applied_, testing::ElementsAre(5));
  ASSERT_EQ(second->results_size(), 1);
  EXPECT_EQ(second->results(0).code(), first->results(0).code());
}

TEST_F(ControlChannelTest, OldBatchThatArrivesLateIsNotApplied) {
  sender_.Add(kPeer, Operation(1));
  const auto old = sender_.NextBatch(kPeer);
  ASSERT_THAT(Receive(*old), IsOk());
  sender_.Finish(kPeer);
  sender_.Add(kPeer, Operation(2));
  ASSERT_THAT(Receive(*sender_.NextBatch(kPeer)), IsOk());
  ASSERT_THAT(Receive(*old), IsOk());
  EXPECT_THAT(applied_, testing::ElementsAre(1, 2));
}

TEST_F(ControlChannelTest, GapIsRefused) {
  v1::RRefControlRequest request;
  request.set_first_sequence(2);
  *request.add_operations() = Operation(1);
  EXPECT_THAT(Receive(request), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_TRUE(applied_.empty());
}

TEST_F(ControlChannelTest, LargeQueueIsSentInSeveralBatches) {
  for (size_t i = 0; i < ControlSender::kMaxBatch + 1; ++i) {
    sender_.Add(kPeer, Operation(i));
  }
  EXPECT_EQ(sender_.NextBatch(kPeer)->operations_size(),
            static_cast<int>(ControlSender::kMaxBatch));
  sender_.Finish(kPeer);
  EXPECT_EQ(sender_.NextBatch(kPeer)->operations_size(), 1);
}

TEST_F(ControlChannelTest, ClosedPeerIsForgottenAndRefused) {
  sender_.Add(kPeer, Operation(1));
  const auto batch = sender_.NextBatch(kPeer);
  sender_.Close(kPeer);
  sender_.Add(kPeer, Operation(2));
  EXPECT_EQ(sender_.pending(), 0u);
  EXPECT_FALSE(sender_.NextBatch(kPeer).has_value());
  receiver_.Close(kPeer);
  EXPECT_THAT(Receive(*batch), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_TRUE(applied_.empty());
}

// The receiver keeps its reply, so it limits the size of a batch.
TEST_F(ControlChannelTest, BatchAboveTheMaximumIsRefused) {
  v1::RRefControlRequest request;
  request.set_first_sequence(1);
  for (size_t i = 0; i < ControlSender::kMaxBatch; ++i) {
    request.add_operations();
  }
  EXPECT_THAT(Receive(request), IsOk());
  const size_t applied = applied_.size();
  request.set_first_sequence(request.operations_size() + 1);
  request.add_operations();
  EXPECT_THAT(Receive(request), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(applied_.size(), applied);
}

}  // namespace
}  // namespace hawser::rref
