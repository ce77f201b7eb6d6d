// Groups whose ranks run on machines with several ranks each, as their options
// say: threads of one process.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "async/testing/status_matchers.h"
#include "collectives/gloo/backend.h"
#include "collectives/process_group.h"
#include "collectives/reduce_op.h"
#include "collectives/testing/conformance.h"
#include "collectives/testing/run_ranks.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "store/hash/store.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace hawser::collectives {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using tensor::DType;
using ::testing::Each;
using ::testing::HasSubstr;

// The machine of a rank.
using MachineOf = std::function<std::string(int rank)>;

MachineOf RanksPerMachine(int count) {
  return [count](int rank) { return absl::StrCat("machine ", rank / count); };
}

std::string Alternating(int rank) { return absl::StrCat("machine ", rank % 2); }

// That of this process.
std::string Unnamed(int /*rank*/) { return ""; }

MakeBackends BackendsOn(const MachineOf& machine_of) {
  return [machine_of](int size) {
    store::HashStore store;
    std::vector<std::unique_ptr<Backend>> backends(static_cast<size_t>(size));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; ++rank) {
      threads.emplace_back([&, rank] {
        auto backend = MakeGlooBackend(store, rank, size, absl::Seconds(60),
                                       {.machine = machine_of(rank)});
        ASSERT_TRUE(backend.ok()) << backend.status();
        backends[static_cast<size_t>(rank)] = *std::move(backend);
      });
    }
    for (std::thread& thread : threads) thread.join();
    return backends;
  };
}

std::vector<ConformanceParam> ParamsOn(const MachineOf& machine_of,
                                       const std::vector<int>& sizes) {
  // 16-bit averages are rounded on each machine too.
  return ConformanceParams(BackendsOn(machine_of),
                           {.rounds_averages_once = false}, sizes);
}

// Average on all ranks of what `of(rank)` returns.
std::vector<float> AverageOf(DType dtype, int size, const MachineOf& machine_of,
                             const std::function<float(int)>& of) {
  std::vector<float> results(static_cast<size_t>(size));
  RunRanks(BackendsOn(machine_of), size, [&](ProcessGroup& group) {
    // Of two lengths: those of a short and a long operation.
    for (const int64_t length : {1, 100'001}) {
      const Tensor data = *Tensor::Full({length}, of(group.rank())).To(dtype);
      ASSERT_THAT(group.AllReduce(data, ReduceOp::kAverage), IsOk());
      const std::vector<float> values = data.To(DType::kF32)->ToVector<float>();
      ASSERT_EQ(values.front(), values.back());
      results[static_cast<size_t>(group.rank())] = values.back();
    }
  });
  return results;
}

TEST(HierarchicalTest, AveragesWeighAllRanksAlike) {
  // 0 + 1 + 2 + 3 + 4, on machines of two, two and one ranks.
  for (const DType dtype :
       {DType::kF32, DType::kF16, DType::kBF16, DType::kI64}) {
    EXPECT_THAT(AverageOf(dtype, 5, RanksPerMachine(2),
                          [](int rank) { return static_cast<float>(rank); }),
                Each(2.0f))
        << tensor::DTypeName(dtype);
  }
}

// (0 + 1 + 1 + 2) / 4, where the averages of the machines are 0.5 and 1.5.
TEST(HierarchicalTest, AveragesOfIntegersAreTruncatedOnce) {
  EXPECT_THAT(
      AverageOf(DType::kI32, 4, RanksPerMachine(2),
                [](int rank) { return static_cast<float>((rank + 1) / 2); }),
      Each(1.0f));
}

// The sums would be above 65504.
TEST(HierarchicalTest, AveragesOfF16DoNotOverflow) {
  for (const int size : {4, 5}) {
    EXPECT_THAT(AverageOf(DType::kF16, size, RanksPerMachine(2),
                          [](int) { return 60000.0f; }),
                Each(60000.0f))
        << size;
  }
}

TEST(HierarchicalTest, ListsAndPartsOfOddSizesAreReduced) {
  RunRanks(BackendsOn(RanksPerMachine(2)), 4, [](ProcessGroup& group) {
    std::vector<Tensor> tensors;
    for (const int64_t length : {3, 50'021, 0, 1, 70'000}) {
      tensors.push_back(Tensor::Full({length}, group.rank() + 1));
    }
    ASSERT_THAT(group.AllReduce(tensors), IsOk());
    for (const Tensor& tensor : tensors) {
      EXPECT_THAT(tensor.ToVector<float>(), Each(10.0f));
    }
  });
}

// Ranks 0 and 2 are the first of their machines, and reduce for ranks 1 and 3.
// Rank 3 waits for rank 2, which waits for rank 0, which waits for rank 1. The
// timeout of rank 3 passes first.
TEST(HierarchicalTest, TheRankThatHasNotBegunIsNamed) {
  auto backends = BackendsOn(RanksPerMachine(2))(4);
  absl::BlockingCounter waiting(3);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 4; ++rank) {
    threads.emplace_back([&, rank] {
      ProcessGroup group(
          std::move(backends[static_cast<size_t>(rank)]), rank, 4,
          {.timeout = rank == 3 ? absl::Seconds(1) : absl::Seconds(60)});
      ASSERT_THAT(group.Barrier(), IsOk());
      if (rank == 1) {
        waiting.Wait();
        return;
      }
      EXPECT_THAT(std::string(group.AllReduce(Tensor::Zeros({10})).message()),
                  HasSubstr("rank 1 did not take part"));
      waiting.DecrementCount();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Rank 2 waits for rank 3 in shared memory.
TEST(HierarchicalTest, AbortEndsWaitsInSharedMemory) {
  // An abort also ends a barrier that other ranks have passed already.
  absl::BlockingCounter passed(3);
  absl::BlockingCounter ended(3);
  RunRanks(BackendsOn(RanksPerMachine(2)), 4,
           [&passed, &ended](ProcessGroup& group) {
             EXPECT_THAT(group.Barrier(), IsOk());
             if (group.rank() == 3) {
               passed.Wait();
               group.Abort(absl::CancelledError("the user has stopped it"));
               ended.Wait();
               return;
             }
             passed.DecrementCount();
             const absl::Time begin = absl::Now();
             EXPECT_THAT(group.AllReduce(Tensor::Zeros({100'000})),
                         StatusIs(absl::StatusCode::kAborted,
                                  HasSubstr("the user has stopped it")));
             EXPECT_LT(absl::Now() - begin, absl::Seconds(10));
             ended.DecrementCount();
           },
           {.timeout = absl::Seconds(20)});
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(TwoRanksPerMachine, ConformanceTest,
                         testing::ValuesIn(ParamsOn(RanksPerMachine(2),
                                                    {3, 8})),
                         ConformanceName);
INSTANTIATE_TEST_SUITE_P(ThreeRanksPerMachine, ConformanceTest,
                         testing::ValuesIn(ParamsOn(RanksPerMachine(3), {7})),
                         ConformanceName);
INSTANTIATE_TEST_SUITE_P(AlternatingMachines, ConformanceTest,
                         testing::ValuesIn(ParamsOn(Alternating, {4})),
                         ConformanceName);
INSTANTIATE_TEST_SUITE_P(OneMachine, ConformanceTest,
                         testing::ValuesIn(ParamsOn(Unnamed, {2})),
                         ConformanceName);

}  // namespace hawser::collectives
