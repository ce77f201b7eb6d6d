// Data-parallel training in distributed autograd contexts.

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "async/future.h"
#include "async/status_macros.h"
#include "async/testing/status_matchers.h"
#include "autograd/backward.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/variable.h"
#include "collectives/loopback/backend.h"
#include "collectives/process_group.h"
#include "collectives/testing/run_ranks.h"
#include "dist_autograd/dist_autograd.h"
#include "dist_autograd/dist_autograd_service.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/module.h"
#include "parallel/distributed_data_parallel.h"
#include "parallel/gradient_bucket.h"
#include "rpc/functions/function.h"
#include "rpc/testing/agent_test_fixture.h"
#include "tensor/tensor.h"
#include "tests/distributed_job.h"

namespace hawser::tests {
namespace {

using collectives::ProcessGroup;
using dist_autograd::ContextScope;
using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using parallel::DistributedDataParallel;
using parallel::DistributedDataParallelOptions;
using tensor::Tensor;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

inline constexpr rpc::Function<Tensor(Tensor)> kDouble{"parallel.Double"};

// y = (sum(a) + sum(b)) * x, or without one of them.
class TwoParts final : public nn::Module {
 public:
  TwoParts() : a_(Tensor::Full({3}, 1)), b_(Tensor::Full({2}, 1)) {
    EXPECT_THAT(autograd::SetRequiresGrad(a_), IsOk());
    EXPECT_THAT(autograd::SetRequiresGrad(b_), IsOk());
    RegisterParameter("a", &a_);
    RegisterParameter("b", &b_);
  }

  absl::StatusOr<Tensor> Forward(double x, bool with_a = true,
                                 bool with_b = true) const {
    Tensor sum = Tensor::Scalar(0);
    if (with_a) {
      ASSIGN_OR_RETURN(const Tensor part, autograd::Sum(a_));
      ASSIGN_OR_RETURN(sum, autograd::Add(sum, part));
    }
    if (with_b) {
      ASSIGN_OR_RETURN(const Tensor part, autograd::Sum(b_));
      ASSIGN_OR_RETURN(sum, autograd::Add(sum, part));
    }
    return autograd::Mul(sum, Tensor::Scalar(x));
  }

  const Tensor& a() const { return a_; }
  const Tensor& b() const { return b_; }

 private:
  Tensor a_;
  Tensor b_;
};

// A rank: a worker, a model, and its part of a group.
struct Rank {
  rpc::Agent& agent;
  ProcessGroup& group;
  TwoParts model = {};
  std::unique_ptr<DistributedDataParallel> parallel = nullptr;

  int index() const { return group.rank(); }

  absl::Status Pass(const ContextScope& context, double x, bool with_a = true,
                    bool with_b = true) {
    ASSIGN_OR_RETURN(const Tensor y, parallel->Forward([&] {
      return model.Forward(x, with_a, with_b);
    }));
    return dist_autograd::Backward(agent, context.id(), {y});
  }

  std::vector<float> Gradient(const ContextScope& context,
                              const Tensor& parameter) {
    const auto gradients = dist_autograd::GetGradients(agent, context.id());
    EXPECT_THAT(gradients, IsOk());
    const Tensor found = dist_autograd::FindGradient(*gradients, parameter);
    return found.defined() ? found.ToVector<float>() : std::vector<float>();
  }
};

// Runs `body` on the ranks of a group, which are workers of a job that has
// `others` more.
void RunRanks(int size, const std::function<void(Rank&)>& body,
              const DistributedDataParallelOptions& options = {},
              int others = 0) {
  rpc::TestJob job;
  ASSERT_THAT(job.registry().Register(
                  kDouble, [](const Tensor& x) { return autograd::Add(x, x); }),
              IsOk());
  StartDistributed(job, size + others);
  collectives::RunRanks(
      collectives::MakeLoopbackBackends, size, [&](ProcessGroup& group) {
        Rank rank{.agent = job.agent(group.rank()), .group = group};
        auto made = DistributedDataParallel::Create(rank.model, group, options);
        ASSERT_THAT(made, IsOk());
        rank.parallel = *std::move(made);
        body(rank);
      });
  for (int i = 0; i < size; ++i) ExpectNothingLeft(job.agent(i));
}

std::unique_ptr<ContextScope> Open(Rank& rank) {
  return *ContextScope::Open(rank.agent);
}

TEST(ParallelContextTest, GradientsAreAveragedInTheContext) {
  for (const int size : {1, 2, 4}) {
    RunRanks(size, [&](Rank& rank) {
      const double mean = (size - 1) / 2.;
      // The buckets are assigned anew after the first pass.
      for (int step = 1; step <= 3; ++step) {
        const auto context = Open(rank);
        ASSERT_THAT(rank.Pass(*context, step * rank.index()), IsOk());
        EXPECT_THAT(rank.Gradient(*context, rank.model.a()),
                    ElementsAre(mean * step, mean * step, mean * step));
        // Another pass adds to the average.
        ASSERT_THAT(rank.Pass(*context, rank.index()), IsOk());
        EXPECT_THAT(rank.Gradient(*context, rank.model.b()),
                    ElementsAre(mean * (step + 1), mean * (step + 1)));
        EXPECT_FALSE(autograd::Grad(rank.model.a()).defined());
      }
      // Local passes use the gradients of the parameters.
      const auto y = rank.parallel->Forward(
          [&] { return rank.model.Forward(10 * rank.index()); });
      ASSERT_THAT(y, IsOk());
      ASSERT_THAT(autograd::Backward(*y), IsOk());
      EXPECT_THAT(autograd::Grad(rank.model.b()).ToVector<float>(),
                  ElementsAre(10 * mean, 10 * mean));
    });
  }
}

TEST(ParallelContextTest, PassesOfOtherContextsLeaveGradientsAsTheyAre) {
  RunRanks(2, [&](Rank& rank) {
    auto first = Open(rank);
    ASSERT_THAT(rank.Pass(*first, 4), IsOk());
    const auto gradients = dist_autograd::GetGradients(rank.agent, first->id());
    const Tensor kept = dist_autograd::FindGradient(*gradients, rank.model.a());
    // Contexts of one thread do not nest; those of several threads do.
    std::thread([&] {
      const auto second = Open(rank);
      EXPECT_THAT(rank.Pass(*second, 7), IsOk());
      EXPECT_THAT(rank.Gradient(*second, rank.model.a()), ElementsAre(7, 7, 7));
    }).join();
    EXPECT_THAT(rank.Gradient(*first, rank.model.a()), ElementsAre(4, 4, 4));
    EXPECT_THAT(kept.ToVector<float>(), ElementsAre(4, 4, 4));
  });
}

TEST(ParallelContextTest, ASecondPassBeforeTheFirstHasEndedIsRefused) {
  RunRanks(1, [&](Rank& rank) {
    const auto first = Open(rank);
    const auto y =
        rank.parallel->Forward([&] { return rank.model.Forward(1); });
    ASSERT_THAT(y, IsOk());
    std::thread([&] {
      const auto second = Open(rank);
      EXPECT_THAT(rank.Pass(*second, 1),
                  StatusIs(absl::StatusCode::kFailedPrecondition,
                           HasSubstr("gradients of 2 parameters: a, b")));
    }).join();
    EXPECT_THAT(dist_autograd::Backward(rank.agent, first->id(), {*y}), IsOk());
    EXPECT_THAT(rank.Gradient(*first, rank.model.b()), ElementsAre(1, 1));
  });
}

TEST(ParallelContextTest, LocalPassesAddUpInTheContext) {
  RunRanks(2, [&](Rank& rank) {
    const auto context = Open(rank);
    {
      const DistributedDataParallel::NoSync no_sync(*rank.parallel);
      ASSERT_THAT(rank.Pass(*context, rank.index() + 1), IsOk());
      EXPECT_THAT(rank.Gradient(*context, rank.model.b()),
                  ElementsAre(rank.index() + 1, rank.index() + 1));
    }
    ASSERT_THAT(rank.Pass(*context, 10), IsOk());
    EXPECT_THAT(rank.Gradient(*context, rank.model.b()),
                ElementsAre(11.5, 11.5));
  });
}

TEST(ParallelContextTest, FindsUnusedParameters) {
  RunRanks(2,
           [&](Rank& rank) {
             const bool second = rank.index() == 1;
             {
               // Used on rank 1 only.
               const auto context = Open(rank);
               ASSERT_THAT(rank.Pass(*context, 3, true, second), IsOk());
               EXPECT_THAT(rank.Gradient(*context, rank.model.a()),
                           ElementsAre(3, 3, 3));
               EXPECT_THAT(rank.Gradient(*context, rank.model.b()),
                           ElementsAre(1.5, 1.5));
               // Used before: the pass reduces the sum.
               ASSERT_THAT(rank.Pass(*context, 1, true, false), IsOk());
               EXPECT_THAT(rank.Gradient(*context, rank.model.b()),
                           ElementsAre(1.5, 1.5));
             }
             const auto context = Open(rank);
             ASSERT_THAT(rank.Pass(*context, 3, true, false), IsOk());
             EXPECT_THAT(rank.Gradient(*context, rank.model.b()), IsEmpty());
             EXPECT_FALSE(autograd::Grad(rank.model.b()).defined());
           },
           {.find_unused_parameters = true});
}

TEST(ParallelContextTest, RanksMayRunOutOfBatches) {
  RunRanks(2,
           [&](Rank& rank) {
             for (int batch = 0; batch < 2 * rank.index() + 1; ++batch) {
               const auto context = Open(rank);
               ASSERT_THAT(rank.Pass(*context, 4 * rank.index() + 2), IsOk());
               // The average of 2 and 6, and then 6 alone.
               const float expected = batch == 0 ? 4 : 6;
               EXPECT_THAT(rank.Gradient(*context, rank.model.b()),
                           ElementsAre(expected, expected));
             }
             EXPECT_THAT(rank.parallel->Join(), IsOk());
           },
           {.uneven_inputs = parallel::UnevenInputs::kAverageOverActive});
}

TEST(ParallelContextTest, UnusedParametersAreNamedAtOnce) {
  RunRanks(2, [&](Rank& rank) {
    const auto context = Open(rank);
    EXPECT_THAT(
        rank.Pass(*context, 1, true, false),
        StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(": b;")));
  });
}

// The result comes back from another worker, in whose graph the walk of the
// recorded graph does not follow.
TEST(ParallelContextTest, ParametersMayContributeThroughOtherWorkers) {
  RunRanks(
      2,
      [&](Rank& rank) {
        const auto context = Open(rank);
        const auto y = rank.parallel->Forward([&]() -> absl::StatusOr<Tensor> {
          ASSIGN_OR_RETURN(const Tensor here, rank.model.Forward(rank.index()));
          return rank.agent.Sync("w2", kDouble, here);
        });
        ASSERT_THAT(y, IsOk());
        ASSERT_THAT(dist_autograd::Backward(rank.agent, context->id(), {*y}),
                    IsOk());
        EXPECT_THAT(rank.Gradient(*context, rank.model.a()),
                    ElementsAre(1, 1, 1));
      },
      {}, /*others=*/1);
}

// The pass of the local engine waits in the hook of the last gradient. This one
// goes on: the reduction ends only when a node after that hook has run.
TEST(ParallelContextTest, ThePassGoesOnWhileGradientsAreReduced) {
  async::Promise<void> reduced;
  std::vector<std::string> events;
  const auto hook = [&](ProcessGroup&, const parallel::GradientBucket& bucket) {
    events.push_back("bucket " + std::to_string(bucket.index));
    return bucket.is_last ? reduced.future()
                          : async::MakeReadyFuture<void>(absl::OkStatus());
  };
  RunRanks(
      1,
      [&](Rank& rank) {
        // Recorded first, so that its gradient comes last.
        Tensor other = Tensor::Full({}, 2);
        ASSERT_THAT(autograd::SetRequiresGrad(other), IsOk());
        const Tensor square = *autograd::Mul(other, other);
        ASSERT_THAT(autograd::RegisterHook(
                        other,
                        [&](const Tensor&) -> absl::StatusOr<Tensor> {
                          events.emplace_back("other");
                          reduced.Set(absl::OkStatus());
                          return Tensor();
                        }),
                    IsOk());
        ASSERT_THAT(autograd::RegisterHook(
                        rank.model.a(),
                        [&](const Tensor&) -> absl::StatusOr<Tensor> {
                          events.emplace_back("a");
                          return Tensor();
                        }),
                    IsOk());
        const auto context = Open(rank);
        const auto y = rank.parallel->Forward([&]() -> absl::StatusOr<Tensor> {
          ASSIGN_OR_RETURN(const Tensor part, rank.model.Forward(1));
          return autograd::Add(part, square);
        });
        ASSERT_THAT(y, IsOk());
        ASSERT_THAT(dist_autograd::Backward(rank.agent, context->id(), {*y}),
                    IsOk());
        EXPECT_THAT(events, ElementsAre("bucket 0", "a", "bucket 1", "other"));
      },
      {.bucket_bytes = 1, .first_bucket_bytes = 1, .hook = hook});
}

TEST(ParallelContextTest, ForwardAndBackwardNeedTheSameContext) {
  RunRanks(1, [&](Rank& rank) {
    {
      const auto context = Open(rank);
      const auto y =
          rank.parallel->Forward([&] { return rank.model.Forward(1); });
      ASSERT_THAT(y, IsOk());
      EXPECT_THAT(autograd::Backward(*y),
                  StatusIs(absl::StatusCode::kFailedPrecondition,
                           HasSubstr("runs outside of a distributed autograd "
                                     "context, but DistributedDataParallel::"
                                     "Forward was called in distributed "
                                     "autograd context")));
    }
  });
  RunRanks(1, [&](Rank& rank) {
    const auto y =
        rank.parallel->Forward([&] { return rank.model.Forward(1); });
    ASSERT_THAT(y, IsOk());
    const auto context = Open(rank);
    EXPECT_THAT(dist_autograd::Backward(rank.agent, context->id(), {*y}),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         HasSubstr("Forward was called outside of")));
  });
}

// Rank 0 fails before it has started all buckets. Rank 1 waits for them.
TEST(ParallelContextTest, AFailedPassEndsThoseOfTheOtherRanks) {
  RunRanks(
      2,
      [&](Rank& rank) {
        const auto context = Open(rank);
        const auto fail = [&](const Tensor&) -> absl::StatusOr<Tensor> {
          if (rank.index() == 1) return Tensor();
          return absl::DataLossError("the gradient is wrong");
        };
        ASSERT_THAT(autograd::RegisterHook(rank.model.a(), fail), IsOk());
        EXPECT_THAT(
            rank.Pass(*context, 1),
            rank.index() == 0
                ? StatusIs(absl::StatusCode::kDataLoss,
                           HasSubstr("the gradient is wrong"))
                : StatusIs(absl::StatusCode::kAborted,
                           HasSubstr("the backward pass of rank 0 has failed: "
                                     "the gradient is wrong")));
        EXPECT_THAT(rank.Pass(*context, 1),
                    StatusIs(absl::StatusCode::kFailedPrecondition,
                             HasSubstr("the gradient is wrong")));
      },
      {.bucket_bytes = 1, .first_bucket_bytes = 1});
}

// Rank 0 waits for the gradients of rank 1 when `end` ends its pass.
void ExpectEnd(
    absl::StatusCode code, const std::string& reason,
    const std::function<void(Rank&, std::unique_ptr<ContextScope>&)>& end) {
  absl::Notification ended;
  RunRanks(
      2,
      [&](Rank& rank) {
        auto context = Open(rank);
        if (rank.index() == 1) {
          ended.WaitForNotification();
          EXPECT_THAT(rank.Pass(*context, 1),
                      StatusIs(absl::StatusCode::kAborted, HasSubstr(reason)));
          return;
        }
        const auto y = rank.parallel->Forward([&] {
          return rank.agent.Sync("w2", kDouble, *rank.model.Forward(1));
        });
        ASSERT_THAT(y, IsOk());
        const async::Future<void> pass =
            dist_autograd::BackwardAsync(rank.agent, context->id(), {*y});
        EXPECT_FALSE(pass.ready());
        end(rank, context);
        EXPECT_THAT(pass.Wait(), StatusIs(code, HasSubstr(reason)));
        ended.Notify();
      },
      {}, /*others=*/1);
}

TEST(EndedPassTest, AContextThatEndsEndsThePassesOfAllRanks) {
  ExpectEnd(
      absl::StatusCode::kAborted, "has ended",
      [](Rank&, std::unique_ptr<ContextScope>& context) { context.reset(); });
}

TEST(EndedPassTest, ALostWorkerEndsThePassesOfAllRanks) {
  ExpectEnd(
      absl::StatusCode::kUnavailable, "lost worker 'w2'",
      [](Rank& rank, std::unique_ptr<ContextScope>&) {
        rank.agent.service<dist_autograd::DistAutogradService>()->OnWorkerLost(
            *rank.agent.FindWorker("w2"), absl::UnavailableError("silent"));
      });
}

}  // namespace
}  // namespace hawser::tests
