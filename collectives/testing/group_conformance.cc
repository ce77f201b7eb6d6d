// The part of the conformance suite on order, wrong use and the end of a group.

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "async/testing/status_matchers.h"
#include "collectives/process_group.h"
#include "collectives/reduce_op.h"
#include "collectives/testing/conformance.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace hawser::collectives {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using tensor::DType;
using ::testing::AnyOf;
using ::testing::HasSubstr;

TEST_P(ConformanceTest, BackgroundOperationsKeepTheirOrder) {
  Run([](ProcessGroup& group) {
    std::vector<Tensor> tensors;
    std::vector<Work> works;
    for (int i = 0; i < 50; ++i) {
      tensors.push_back(Tensor::Full({i % 3 == 0 ? 50'000 : 10}, i));
      works.push_back(i % 2 == 0 ? group.AllReduceAsync(tensors.back())
                                 : group.BroadcastAsync(tensors.back(), 0));
    }
    Tensor last = Tensor::Full({3}, 1);
    ASSERT_THAT(group.AllReduce(last), IsOk());
    // Blocking calls come after those of the background.
    for (const Work& work : works) {
      EXPECT_THAT(work.Wait(), IsOk());
    }
    for (int i = 0; i < 50; ++i) {
      EXPECT_EQ(tensors[static_cast<size_t>(i)].ToVector<float>()[0],
                i % 2 == 0 ? i * group.size() : i);
    }
    EXPECT_THAT(group.BarrierAsync().Wait(), IsOk());
    EXPECT_EQ(group.sequence(), 52);
  });
}

TEST_P(ConformanceTest, OperationsRunInOrderAsOne) {
  Run([](ProcessGroup& group) {
    Tensor first = Tensor::Full({4}, 1);
    const Work work = group.RunInOrder([&]() -> absl::Status {
      absl::Status status = group.AllReduce(first);
      if (!status.ok()) return status;
      // Depends on the result.
      return group.Broadcast(
          Tensor::Zeros({static_cast<int64_t>(first.data<float>()[0])}), 0);
    });
    // Comes after both.
    Tensor second = Tensor::Full({9}, group.rank());
    ASSERT_THAT(group.AllReduce(second, ReduceOp::kMax), IsOk());
    ExpectEqual(second, Tensor::Full({9}, group.size() - 1), "second");
    ASSERT_THAT(work.Wait(), IsOk());
    ExpectEqual(first, Tensor::Full({4}, group.size()), "first");
    EXPECT_THAT(
        group.RunInOrder([] { return absl::DataLossError("a reason"); }).Wait(),
        StatusIs(absl::StatusCode::kDataLoss));
    EXPECT_THAT(group.Barrier(), IsOk());
  });
}

TEST_P(ConformanceTest, WrongArgumentsAreRefusedAtOnce) {
  Run(
      [](ProcessGroup& group) {
        const auto refused = StatusIs(absl::StatusCode::kInvalidArgument);
        const Tensor data = Tensor::Zeros({int64_t{2} * group.size()});
        EXPECT_THAT(group.Broadcast(data, group.size()), refused);
        EXPECT_THAT(group.Broadcast(data, -1), refused);
        EXPECT_THAT(group.Broadcast(Tensor(), 0), refused);
        EXPECT_THAT(group.AllReduce(std::vector<Tensor>()), refused);
        EXPECT_THAT(group.AllReduce(data, ReduceOp::kBitAnd), refused);
        EXPECT_THAT(
            group.AllReduce({data, Tensor::Zeros({1}, {.dtype = DType::kI32})}),
            refused);
        EXPECT_THAT(
            group.AllReduce(Tensor::Zeros({1}, {.dtype = DType::kBool})),
            refused);
        EXPECT_THAT(group.AllGather(data, Tensor::Zeros({1})), refused);
        EXPECT_THAT(group.AllGather(data, std::vector<Tensor>()), refused);
        EXPECT_THAT(group.ReduceScatter(data, Tensor::Zeros({3})), refused);
        EXPECT_THAT(group.Send(data, group.size()), refused);
        EXPECT_THAT(group.Receive(data, -1), refused);
        EXPECT_THAT(group.AllToAll(data, data, {1}, {2, 3}), refused);
        if (group.rank() == 0) {
          EXPECT_THAT(group.Scatter({}, data, 0), refused);
        } else {
          EXPECT_THAT(group.Scatter({data}, data, 0), refused);
        }
        EXPECT_EQ(group.sequence(), 0);
      },
      {.timeout = absl::Seconds(20)});
}

TEST_P(ConformanceTest, DifferentCallsAreFound) {
  Run(
      [](ProcessGroup& group) {
        Tensor data = Tensor::Full({8}, 1);
        ASSERT_THAT(group.AllReduce(data), IsOk());
        ExpectEqual(data, Tensor::Full({8}, group.size()), "checked");
        if (group.size() == 1) return;
        const absl::Status status = group.rank() == group.size() - 1
                                        ? group.AllReduce(Tensor::Zeros({9}))
                                        : group.AllReduce(data, ReduceOp::kMax);
        EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                                     HasSubstr("all-reduce of f32[9] by sum")));
        EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                                     HasSubstr("all-reduce of f32[8] by max")));
        EXPECT_THAT(group.AllReduce(data), IsOk());
      },
      {.check_calls = true});
}

TEST_P(ConformanceTest, AMissingRankIsNamed) {
  Run(
      [](ProcessGroup& group) {
        if (group.size() == 1) return;
        // Rank 0 leaves the others alone.
        if (group.rank() == 0) return;
        Tensor data = Tensor::Zeros({8});
        EXPECT_THAT(
            group.AllReduce(data),
            AnyOf(
                StatusIs(absl::StatusCode::kDeadlineExceeded,
                         HasSubstr("rank 0")),
                StatusIs(absl::StatusCode::kAborted, HasSubstr("rank 0")),
                StatusIs(absl::StatusCode::kUnavailable, HasSubstr("rank 0"))));
        EXPECT_THAT(group.AllReduce(data),
                    StatusIs(absl::StatusCode::kFailedPrecondition,
                             HasSubstr("cannot be used any more")));
        EXPECT_THAT(group.Send(data, 0),
                    StatusIs(absl::StatusCode::kFailedPrecondition));
      },
      {.timeout = absl::Milliseconds(300)});
}

TEST_P(ConformanceTest, AbortEndsAllRanks) {
  Run([](ProcessGroup& group) {
    if (group.size() == 1) return;
    Tensor data = Tensor::Zeros({8});
    ASSERT_THAT(group.Barrier(), IsOk());
    // The end of the group may overtake that of the barrier on other ranks:
    // they say that they have passed it.
    const Tensor passed = Tensor::Zeros({1});
    if (group.rank() == group.size() - 1) {
      for (int other = 0; other < group.rank(); ++other) {
        ASSERT_THAT(group.Receive(passed, other, 1), IsOk());
      }
      group.Abort(absl::UnavailableError("w7 is lost"));
      EXPECT_THAT(group.AllReduce(data),
                  StatusIs(absl::StatusCode::kFailedPrecondition));
      return;
    }
    const Work told = group.SendAsync(passed, group.size() - 1, 1);
    Tensor message = Tensor::Zeros({5});
    const Work received = group.ReceiveAsync(message, group.size() - 1);
    EXPECT_THAT(group.AllReduce(data),
                AnyOf(StatusIs(absl::StatusCode::kAborted),
                      StatusIs(absl::StatusCode::kUnavailable),
                      StatusIs(absl::StatusCode::kFailedPrecondition)));
    EXPECT_FALSE(received.Wait().ok());
    (void)told.Wait();
  });
}

}  // namespace hawser::collectives
