// The part of the conformance suite on messages.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/future.h"
#include "async/testing/status_matchers.h"
#include "collectives/p2p_op.h"
#include "collectives/process_group.h"
#include "collectives/testing/conformance.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace hawser::collectives {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using tensor::DType;
using ::testing::AllOf;
using ::testing::HasSubstr;

namespace {

int RightOf(const ProcessGroup& group) {
  return (group.rank() + 1) % group.size();
}
int LeftOf(const ProcessGroup& group) {
  return (group.rank() + group.size() - 1) % group.size();
}

void ExpectFull(const Tensor& actual, int64_t value, const std::string& what) {
  EXPECT_EQ(
      actual.ToVector<int64_t>(),
      std::vector<int64_t>(static_cast<size_t>(actual.num_elements()), value))
      << what;
}

Tensor Values(int64_t length, int64_t value) {
  return Tensor::Full({length}, static_cast<double>(value),
                      {.dtype = DType::kI64});
}

// Of f32, other ones for each rank.
Tensor Numbers(int64_t length, int rank) {
  std::vector<float> values;
  for (int64_t i = 0; i < length; ++i) {
    values.push_back(static_cast<float>(i + 1000 * rank));
  }
  return Tensor::FromVector(values, {length});
}

}  // namespace

TEST_P(ConformanceTest, MessagesAroundARing) {
  Run([](ProcessGroup& group) {
    for (const int64_t length : {0, 1, 7, 1000, 200'003}) {
      const Tensor mine = Numbers(length, group.rank());
      Tensor theirs = Tensor::Zeros({length});
      const Work sent = group.SendAsync(mine, RightOf(group));
      ASSERT_THAT(group.Receive(theirs, LeftOf(group)), IsOk());
      ASSERT_THAT(sent.Wait(), IsOk());
      ExpectEqual(theirs, Numbers(length, LeftOf(group)), "message");
    }
  });
}

TEST_P(ConformanceTest, MessagesByTag) {
  Run([](ProcessGroup& group) {
    std::vector<Work> works;
    std::vector<Tensor> sent;
    for (uint32_t i = 0; i < 20; ++i) {
      sent.push_back(Tensor::Full({1 + i * 2000}, i));
      works.push_back(group.SendAsync(sent.back(), RightOf(group), i % 4));
    }
    // By tag, from the last to the first; within a tag in order.
    for (uint32_t tag = 4; tag-- > 0;) {
      for (uint32_t i = tag; i < 20; i += 4) {
        Tensor received = Tensor::Zeros({1 + i * 2000});
        ASSERT_THAT(group.Receive(received, LeftOf(group), tag), IsOk());
        ExpectEqual(received, Tensor::Full({1 + i * 2000}, i), "tag");
      }
    }
    for (const Work& work : works) EXPECT_THAT(work.Wait(), IsOk());
    EXPECT_THAT(group.Barrier(), IsOk());
  });
}

TEST_P(ConformanceTest, ReceivesFromAnyRank) {
  Run([](ProcessGroup& group) {
    if (group.rank() != 0) {
      ASSERT_THAT(group.Send(Tensor::Full({100}, group.rank()), 0, 9), IsOk());
      ASSERT_THAT(group.Barrier(), IsOk());
      return;
    }
    std::vector<int> senders;
    for (int i = 1; i < group.size(); ++i) {
      Tensor received = Tensor::Zeros({100});
      const absl::StatusOr<int> from = group.ReceiveAny(received, 9);
      ASSERT_THAT(from, IsOk());
      ExpectEqual(received, Tensor::Full({100}, *from), "any");
      senders.push_back(*from);
    }
    std::sort(senders.begin(), senders.end());
    for (int i = 1; i < group.size(); ++i) {
      EXPECT_EQ(senders[static_cast<size_t>(i) - 1], i);
    }
    ASSERT_THAT(group.Barrier(), IsOk());
  });
}

TEST_P(ConformanceTest, WaitingReceivesTakeMessagesInTheirOrder) {
  Run([](ProcessGroup& group) {
    constexpr int kMessages = 200;
    std::vector<Tensor> received;
    std::vector<Work> receives;
    for (int i = 0; i < kMessages; ++i) {
      received.push_back(Values(1, -1));
      receives.push_back(group.ReceiveAsync(received.back(), LeftOf(group)));
    }
    ASSERT_THAT(group.Barrier(), IsOk());
    for (int i = 0; i < kMessages; ++i) {
      ASSERT_THAT(group.Send(Values(1, i), RightOf(group)), IsOk());
    }
    for (int i = 0; i < kMessages; ++i) {
      const auto at = static_cast<size_t>(i);
      ASSERT_THAT(receives[at].Wait(), IsOk());
      ExpectFull(received[at], i, absl::StrCat(i));
    }
  });
}

TEST_P(ConformanceTest, AReceiveFromAnyRankKeepsItsTurn) {
  Run([](ProcessGroup& group) {
    constexpr int kMessages = 100;
    if (group.size() == 1 || group.rank() > 1) {
      EXPECT_THAT(group.Barrier(), IsOk());
      return;
    }
    if (group.rank() == 1) {
      ASSERT_THAT(group.Barrier(), IsOk());
      for (int i = 0; i < 2 * kMessages; ++i) {
        ASSERT_THAT(group.Send(Values(1, i), 0), IsOk());
      }
      return;
    }
    std::vector<Tensor> received;
    std::vector<async::Future<int>> from_any;
    std::vector<Work> from_one;
    for (int i = 0; i < kMessages; ++i) {
      received.push_back(Values(1, -1));
      from_any.push_back(group.ReceiveAnyAsync(received.back()));
      received.push_back(Values(1, -1));
      from_one.push_back(group.ReceiveAsync(received.back(), 1));
    }
    ASSERT_THAT(group.Barrier(), IsOk());
    for (size_t i = 0; i < kMessages; ++i) {
      EXPECT_THAT(from_any[i].Wait(), IsOkAndHolds(1));
      ExpectFull(received[2 * i], static_cast<int64_t>(2 * i), "any");
      ASSERT_THAT(from_one[i].Wait(), IsOk());
      ExpectFull(received[2 * i + 1], static_cast<int64_t>(2 * i + 1), "one");
    }
  });
}

TEST_P(ConformanceTest, AMessageOfAnotherSizeIsRefused) {
  Run([](ProcessGroup& group) {
    if (group.size() == 1) return;
    if (group.rank() == 0) {
      ASSERT_THAT(group.Send(Tensor::Full({10}, 1), 1), IsOk());
      ASSERT_THAT(group.Send(Tensor::Full({11}, 2), 1), IsOk());
    } else if (group.rank() == 1) {
      Tensor received = Tensor::Zeros({11});
      EXPECT_THAT(group.Receive(received, 0),
                  StatusIs(absl::StatusCode::kInvalidArgument,
                           HasSubstr("rank 0 has sent 40 bytes")));
      ASSERT_THAT(group.Receive(received, 0), IsOk());
      ExpectEqual(received, Tensor::Full({11}, 2), "second");
    }
    EXPECT_THAT(group.Barrier(), IsOk());
  });
}

TEST_P(ConformanceTest, BatchesGoAroundARingInBothDirections) {
  Run([](ProcessGroup& group) {
    // The last is beyond the buffers of all backends: its send waits for the
    // receive.
    for (const int64_t length : {0, 1, 1000, 300'000}) {
      const Tensor from_left = Values(length, -1);
      const Tensor from_right = Values(length, -1);
      std::vector<P2pOp> sends = {
          P2pOp::Send(Values(length, 2 * group.rank()), RightOf(group)),
          P2pOp::Send(Values(length, 2 * group.rank() + 1), LeftOf(group))};
      std::vector<P2pOp> batch = {P2pOp::Receive(from_left, LeftOf(group)),
                                  P2pOp::Receive(from_right, RightOf(group))};
      // Ranks need not agree on the order of sends and receives.
      batch.insert(group.rank() % 2 == 0 ? batch.begin() : batch.end(),
                   sends.begin(), sends.end());
      ASSERT_THAT(group.BatchSendReceive(std::move(batch)), IsOk());
      ExpectFull(from_left, 2 * LeftOf(group), "to the right");
      ExpectFull(from_right, 2 * RightOf(group) + 1, "to the left");
    }
  });
}

TEST_P(ConformanceTest, MessagesOfABatchToOneRankKeepTheirOrder) {
  Run([](ProcessGroup& group) {
    std::vector<P2pOp> batch;
    std::vector<Tensor> received;
    for (int i = 0; i < 12; ++i) {
      const int64_t length = 1 + i * 3000;
      const auto tag = static_cast<uint32_t>(i % 2);
      batch.push_back(P2pOp::Send(Values(length, i), RightOf(group), tag));
      // Every other row of a matrix.
      received.push_back(
          *Tensor::Zeros({length, 2}, {.dtype = DType::kI64}).Select(1, 1));
      batch.push_back(P2pOp::Receive(received.back(), LeftOf(group), tag));
    }
    const Work work = group.BatchSendReceiveAsync(std::move(batch));
    ASSERT_THAT(work.Wait(), IsOk());
    for (int i = 0; i < 12; ++i) {
      ExpectFull(received[static_cast<size_t>(i)], i, absl::StrCat(i));
    }
  });
}

TEST_P(ConformanceTest, ABatchExchangesWithSingleMessages) {
  Run([](ProcessGroup& group) {
    if (group.size() == 1 || group.rank() > 1) return;
    const int other = 1 - group.rank();
    const Tensor mine = Values(2000, group.rank());
    const Tensor theirs = Values(2000, -1);
    if (group.rank() == 0) {
      ASSERT_THAT(group.BatchSendReceive({P2pOp::Receive(theirs, other),
                                          P2pOp::Send(mine, other, 5)}),
                  IsOk());
    } else {
      const Work sent = group.SendAsync(mine, other);
      ASSERT_THAT(group.Receive(theirs, other, 5), IsOk());
      ASSERT_THAT(sent.Wait(), IsOk());
    }
    ExpectFull(theirs, other, "theirs");
  });
}

TEST_P(ConformanceTest, AnEmptyBatchHasEnded) {
  Run([](ProcessGroup& group) {
    const Work work = group.BatchSendReceiveAsync({});
    ASSERT_TRUE(work.ready());
    EXPECT_THAT(work.Wait(), IsOk());
  });
}

TEST_P(ConformanceTest, ABatchWithAWrongArgumentSendsNothing) {
  Run(
      [](ProcessGroup& group) {
        const Tensor data = Values(3, group.rank());
        const struct {
          P2pOp wrong;
          std::string what;
        } cases[] = {
            {P2pOp::Send(data, group.size()), "there is no rank"},
            {P2pOp::Receive(data, -1), "there is no rank -1"},
            {P2pOp::Send(Tensor(), 0), "send: the tensor is undefined"},
            {P2pOp::Receive(Tensor(), 0), "receive: the tensor is undefined"}};
        for (const auto& [wrong, what] : cases) {
          EXPECT_THAT(group.BatchSendReceive(
                          {P2pOp::Send(Values(3, -1), RightOf(group)),
                           P2pOp::Receive(data, LeftOf(group)), wrong}),
                      StatusIs(absl::StatusCode::kInvalidArgument,
                               AllOf(HasSubstr("operation 2 of a batch: "),
                                     HasSubstr(what))));
        }
        // Takes the first message of the left rank.
        const Tensor first = Values(3, -2);
        ASSERT_THAT(
            group.BatchSendReceive({P2pOp::Send(data, RightOf(group)),
                                    P2pOp::Receive(first, LeftOf(group))}),
            IsOk());
        ExpectFull(first, LeftOf(group), "first");
      },
      {.timeout = absl::Seconds(20)});
}

TEST_P(ConformanceTest, AnErrorOfABatchNamesItsOperation) {
  Run([](ProcessGroup& group) {
    if (group.size() == 1) return;
    const Tensor third = Values(5, -1);
    if (group.rank() == 0) {
      ASSERT_THAT(group.BatchSendReceive({P2pOp::Send(Values(4, 1), 1, 1),
                                          P2pOp::Send(Values(4, 2), 1, 2),
                                          P2pOp::Send(Values(5, 3), 1, 3)}),
                  IsOk());
    } else if (group.rank() == 1) {
      // The others of the batch arrive.
      const Tensor first = Values(4, -1);
      EXPECT_THAT(group.BatchSendReceive({P2pOp::Receive(first, 0, 1),
                                          P2pOp::Receive(Values(3, -1), 0, 2),
                                          P2pOp::Receive(third, 0, 3)}),
                  StatusIs(absl::StatusCode::kInvalidArgument,
                           AllOf(HasSubstr("receive from rank 0"),
                                 HasSubstr("rank 0 has sent 32 bytes"))));
      ExpectFull(first, 1, "first");
      ExpectFull(third, 3, "third");
    }
    EXPECT_THAT(group.Barrier(), IsOk());
  });
}

}  // namespace hawser::collectives
