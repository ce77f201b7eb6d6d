#include "dist_autograd/context_container.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/identity/worker_info.h"
#include "rpc/identity/worker_run.h"

namespace hawser::dist_autograd {
namespace {

using async::IsOk;
using async::StatusIs;

class ContextContainerTest : public testing::Test {
 protected:
  static rpc::WorkerInfo Peer(std::string name) {
    return {std::move(name), rpc::WorkerId(7), rpc::Incarnation{1}, ""};
  }
  static constexpr rpc::Incarnation kCreator{3};
  // Id of a context of worker 1.
  static ContextId Id(uint64_t number) {
    return ContextId{(uint64_t{1} << 48) + number};
  }

  ContextContainer container_{{rpc::WorkerId(2), rpc::Incarnation{5}},
                              0,
                              {.max_contexts = 4, .max_contexts_per_peer = 2}};
  const rpc::WorkerInfo a_ = Peer("a");
};

TEST_F(ContextContainerTest, CreatedContextIsFoundUntilRemoved) {
  auto context = container_.Create();
  ASSERT_THAT(context, IsOk());
  EXPECT_EQ(CreatorOf((*context)->id()), 2);
  EXPECT_EQ(*container_.Find((*context)->id()), *context);
  EXPECT_EQ(container_.Remove((*context)->id()), *context);
  EXPECT_THAT(
      container_.Find((*context)->id()),
      StatusIs(absl::StatusCode::kNotFound, testing::HasSubstr("has ended")));
  EXPECT_EQ(container_.size(), 0u);
}

TEST_F(ContextContainerTest, UnknownContextIsNotFound) {
  EXPECT_THAT(
      container_.Find(ContextId{77}),
      StatusIs(absl::StatusCode::kNotFound, testing::HasSubstr("not known")));
}

TEST_F(ContextContainerTest, ContextOfAnotherWorkerIsCreatedOnce) {
  auto first = container_.FindOrCreate(ContextId{77}, kCreator, a_);
  auto second = container_.FindOrCreate(ContextId{77}, kCreator, a_);
  ASSERT_THAT(first, IsOk());
  EXPECT_EQ(*first, *second);
}

TEST_F(ContextContainerTest, ContextThatEndedDoesNotComeBack) {
  // Also if the message of its end arrives before its first message.
  EXPECT_EQ(container_.Remove(ContextId{77}), nullptr);
  auto late = container_.FindOrCreate(ContextId{77}, kCreator, a_);
  ASSERT_THAT(late, IsOk());
  EXPECT_EQ(*late, nullptr);
  EXPECT_TRUE(container_.HasEnded(ContextId{77}));
}

TEST_F(ContextContainerTest, PeerThatBringsAContextIsItsSource) {
  auto context = container_.FindOrCreate(ContextId{77}, kCreator, a_);
  ASSERT_THAT(context, IsOk());
  EXPECT_TRUE((*context)->HasSource(RunOf(a_)));
  rpc::WorkerInfo b = Peer("b");
  b.id = rpc::WorkerId(8);
  ASSERT_THAT(container_.FindOrCreate(ContextId{77}, kCreator, b), IsOk());
  EXPECT_TRUE((*context)->HasSource(RunOf(b)));
}

TEST_F(ContextContainerTest, ContextOfALostPeerIsRefused) {
  // A lost peer would not notify of the end.
  container_.Refuse(a_);
  EXPECT_THAT(container_.FindOrCreate(ContextId{77}, kCreator, a_),
              StatusIs(absl::StatusCode::kAborted));
  EXPECT_EQ(container_.size(), 0u);
  rpc::WorkerInfo again = a_;
  again.incarnation = rpc::Incarnation{99};
  EXPECT_THAT(container_.FindOrCreate(ContextId{77}, kCreator, again), IsOk());
}

TEST_F(ContextContainerTest, PeerDoesNotCreateContextsOfThisWorker) {
  // Such a context would never end, nor would one of a worker that held this
  // rank before.
  for (const rpc::Incarnation creator :
       {rpc::Incarnation{5}, rpc::Incarnation{4}}) {
    auto forged = container_.FindOrCreate(ContextId{(uint64_t{2} << 48) + 9},
                                          creator, a_);
    ASSERT_THAT(forged, IsOk());
    EXPECT_EQ(*forged, nullptr);
  }
  EXPECT_EQ(container_.size(), 0u);
}

TEST_F(ContextContainerTest, ContextOfALostCreatorIsRefused) {
  const auto earlier = container_.FindOrCreate(Id(1), kCreator, a_);
  ASSERT_THAT(earlier, IsOk());
  EXPECT_THAT(container_.CheckCreator(**earlier), IsOk());
  rpc::WorkerInfo creator = Peer("b");
  creator.id = rpc::WorkerId(1);
  creator.incarnation = kCreator;
  container_.Refuse(creator);
  EXPECT_THAT(container_.CheckCreator(**earlier),
              StatusIs(absl::StatusCode::kAborted));
  container_.Remove(Id(1));
  for (const uint64_t number : {1, 3}) {
    EXPECT_THAT(container_.FindOrCreate(Id(number), kCreator, a_),
                StatusIs(absl::StatusCode::kAborted));
  }
  const auto next = container_.FindOrCreate(Id(2), rpc::Incarnation{4}, a_);
  ASSERT_THAT(next, IsOk());
  ASSERT_NE(*next, nullptr);
  EXPECT_EQ((*next)->creator(),
            (rpc::WorkerRun{rpc::WorkerId(1), rpc::Incarnation{4}}));
}

TEST_F(ContextContainerTest, ContextHasOneCreator) {
  ASSERT_THAT(container_.FindOrCreate(Id(1), kCreator, a_), IsOk());
  EXPECT_THAT(container_.FindOrCreate(Id(1), rpc::Incarnation{4}, a_),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(container_.FindOrCreate(Id(2), rpc::Incarnation{}, a_),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

// Such a context would outlive the peer, because this worker would ask itself
// for its end.
TEST_F(ContextContainerTest, ThisIncarnationHasNoOtherId) {
  EXPECT_THAT(container_.FindOrCreate(Id(1), rpc::Incarnation{5}, a_),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(container_.size(), 0u);
}

TEST_F(ContextContainerTest, ContextsOfAPeerAreLimitedUntilOneEnds) {
  ASSERT_THAT(container_.FindOrCreate(Id(1), kCreator, a_), IsOk());
  ASSERT_THAT(container_.FindOrCreate(Id(2), kCreator, a_), IsOk());
  EXPECT_THAT(
      container_.FindOrCreate(Id(3), kCreator, a_),
      StatusIs(absl::StatusCode::kResourceExhausted,
               testing::AllOf(testing::HasSubstr("worker 'a' has 2 "),
                              testing::HasSubstr(
                                  "ContextLimits::max_contexts_per_peer"))));
  EXPECT_EQ(container_.size(), 2u);
  // Existing contexts still work, and other peers have their own limits.
  EXPECT_THAT(container_.FindOrCreate(Id(1), kCreator, a_), IsOk());
  EXPECT_THAT(container_.FindOrCreate(Id(3), kCreator, Peer("b")), IsOk());
  EXPECT_THAT(container_.FindOrCreate(Id(3), kCreator, a_), IsOk());
  EXPECT_NE(container_.Remove(Id(1)), nullptr);
  EXPECT_THAT(container_.FindOrCreate(Id(4), kCreator, a_), IsOk());
}

TEST_F(ContextContainerTest, ContextsAreLimitedInTotal) {
  ASSERT_THAT(container_.FindOrCreate(Id(1), kCreator, a_), IsOk());
  ASSERT_THAT(container_.FindOrCreate(Id(2), kCreator, Peer("b")), IsOk());
  ASSERT_THAT(container_.FindOrCreate(Id(3), kCreator, Peer("c")), IsOk());
  ASSERT_THAT(container_.Create(), IsOk());
  const auto exceeds =
      StatusIs(absl::StatusCode::kResourceExhausted,
               testing::HasSubstr("ContextLimits::max_contexts allows"));
  EXPECT_THAT(container_.Create(), exceeds);
  EXPECT_THAT(container_.FindOrCreate(Id(4), kCreator, a_), exceeds);
  // A refused context does not count.
  EXPECT_NE(container_.Remove(Id(1)), nullptr);
  EXPECT_THAT(container_.FindOrCreate(Id(5), kCreator, a_), IsOk());
  EXPECT_NE(container_.Remove(Id(2)), nullptr);
  EXPECT_THAT(container_.FindOrCreate(Id(6), kCreator, a_), IsOk());
}

TEST(ContextLimitsTest, MustBePositive) {
  EXPECT_THAT(Validate(ContextLimits{}), IsOk());
  EXPECT_THAT(Validate(ContextLimits{.max_contexts = 0}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::HasSubstr("max_contexts must")));
  EXPECT_THAT(Validate(ContextLimits{.max_contexts_per_peer = 0}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::HasSubstr("max_contexts_per_peer")));
}

}  // namespace
}  // namespace hawser::dist_autograd
