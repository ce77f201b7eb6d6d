#include "parallel/distributed_data_parallel.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "async/testing/status_matchers.h"
#include "autograd/backward.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/variable.h"
#include "collectives/loopback/backend.h"
#include "collectives/process_group.h"
#include "collectives/testing/run_ranks.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/linear.h"
#include "nn/loss.h"
#include "nn/module.h"
#include "nn/sequential.h"
#include "optim/optimizer.h"
#include "optim/sgd.h"
#include "parallel/communication_hooks.h"
#include "parallel/gradient_bucket.h"
#include "tensor/dtype.h"
#include "tensor/ops/random.h"
#include "tensor/tensor.h"
#include "tests/training_golden.h"

namespace hawser::parallel {
namespace {

using collectives::ProcessGroup;
using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using tensor::DType;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

void RunRanks(int size, const std::function<void(ProcessGroup&)>& body) {
  collectives::RunRanks(collectives::MakeLoopbackBackends, size, body);
}

void ExpectNear(const Tensor& actual, const Tensor& expected, double bound,
                const std::string& what) {
  ASSERT_EQ(actual.shape(), expected.shape()) << what;
  const std::vector<double> a =
      actual.Detach().To(DType::kF64)->ToVector<double>();
  const std::vector<double> e =
      expected.Detach().To(DType::kF64)->ToVector<double>();
  for (size_t i = 0; i < e.size(); ++i) ASSERT_NEAR(a[i], e[i], bound) << what;
}

// Trains the golden model, each rank on its part of each batch.
absl::Status TrainGolden(ProcessGroup& group,
                         const tests::TrainingGolden& golden,
                         DistributedDataParallelOptions options, double bound) {
  ASSIGN_OR_RETURN(const auto model, tests::MakeGoldenModel());
  // Rank 0's values go to the others.
  if (group.rank() == 0) RETURN_IF_ERROR(model->LoadStateDict(golden.start));
  ASSIGN_OR_RETURN(
      const auto optimizer,
      optim::Optimizer::Create(
          model->parameters(),
          optim::Sgd({.lr = golden.lr, .momentum = golden.momentum})));
  ASSIGN_OR_RETURN(const auto parallel, DistributedDataParallel::Create(
                                            *model, group, std::move(options)));
  for (size_t step = 0; step < golden.inputs.size(); ++step) {
    const int64_t part = golden.inputs[step].dim(0) / group.size();
    ASSIGN_OR_RETURN(const Tensor inputs,
                     golden.inputs[step].Narrow(0, part * group.rank(), part));
    ASSIGN_OR_RETURN(const Tensor labels,
                     golden.labels[step].Narrow(0, part * group.rank(), part));
    optimizer->ZeroGrad();
    ASSIGN_OR_RETURN(
        const Tensor loss, parallel->Forward([&]() -> absl::StatusOr<Tensor> {
          ASSIGN_OR_RETURN(const Tensor logits, model->Forward(inputs));
          return nn::CrossEntropyLoss(logits, labels);
        }));
    RETURN_IF_ERROR(autograd::Backward(loss));
    if (step == 0) {
      const auto parameters = model->named_parameters();
      for (size_t i = 0; i < parameters.size(); ++i) {
        ExpectNear(autograd::Grad(parameters[i].second),
                   golden.first_gradients[i].second, bound,
                   parameters[i].first);
      }
    }
    RETURN_IF_ERROR(optimizer->Step());
  }
  const auto parameters = model->named_parameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    ExpectNear(parameters[i].second, golden.end[i].second, bound,
               parameters[i].first);
  }
  return absl::OkStatus();
}

TEST(DistributedDataParallelTest, AllRanksTogetherReproducePyTorch) {
  const tests::TrainingGolden golden = tests::ReadTrainingGolden();
  for (const int size : {1, 2, 3, 4, 6}) {
    // From a bucket for each parameter to one for all.
    for (const int64_t bytes : {1, 200, 2200, 4400, 1 << 20}) {
      SCOPED_TRACE(testing::Message() << size << " ranks, " << bytes);
      RunRanks(size, [&](ProcessGroup& group) {
        EXPECT_THAT(TrainGolden(group, golden,
                                {.bucket_bytes = bytes,
                                 .first_bucket_bytes = bytes / 2},
                                1e-10),
                    IsOk());
      });
    }
  }
}

TEST(DistributedDataParallelTest, CompressedGradientsAreClose) {
  const tests::TrainingGolden golden = tests::ReadTrainingGolden();
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    RunRanks(2, [&](ProcessGroup& group) {
      EXPECT_THAT(
          TrainGolden(group, golden, {.hook = CompressHook(dtype)}, 0.02),
          IsOk());
    });
  }
}

// What a hook loses comes with later passes: the model gets as good as that of
// the golden training, by another way.
TEST(DistributedDataParallelTest, GradientsThatLoseSomethingConverge) {
  const tests::TrainingGolden golden = tests::ReadTrainingGolden();
  const auto loss_with = [&](const std::function<CommunicationHook()>& make,
                             DType dtype) {
    double last = 0;
    RunRanks(2, [&](ProcessGroup& group) {
      const auto model = tests::MakeGoldenModel();
      ASSERT_THAT((*model)->LoadStateDict(golden.start), IsOk());
      ASSERT_THAT((*model)->To(dtype), IsOk());
      for (const Tensor& each : (*model)->parameters()) {
        ASSERT_THAT(autograd::SetRequiresGrad(each), IsOk());
      }
      const auto optimizer = optim::Optimizer::Create((*model)->parameters(),
                                                      optim::Sgd({.lr = 0.1}));
      const auto parallel = DistributedDataParallel::Create(
          **model, group, {.first_bucket_bytes = 1000, .hook = make()});
      ASSERT_THAT(parallel, IsOk());
      for (int step = 0; step < 300; ++step) {
        const Tensor inputs = *golden.inputs[0]
                                   .Narrow(0, int64_t{6} * group.rank(), 6)
                                   ->To(dtype);
        const Tensor labels =
            *golden.labels[0].Narrow(0, int64_t{6} * group.rank(), 6);
        (*optimizer)->ZeroGrad();
        const auto loss = (*parallel)->Forward([&]() -> absl::StatusOr<Tensor> {
          ASSIGN_OR_RETURN(const Tensor logits, (*model)->Forward(inputs));
          return nn::CrossEntropyLoss(logits, labels);
        });
        ASSERT_THAT(loss, IsOk());
        ASSERT_THAT(autograd::Backward(*loss), IsOk());
        ASSERT_THAT((*optimizer)->Step(), IsOk());
        Tensor mean = *loss->Detach().Clone();
        ASSERT_THAT(group.AllReduce(mean, collectives::ReduceOp::kAverage),
                    IsOk());
        if (group.rank() == 0) {
          last =
              dtype == DType::kF32 ? *mean.item<float>() : *mean.item<double>();
        }
      }
    });
    return last;
  };
  const double plain = loss_with(AllReduceHook, DType::kF64);
  EXPECT_LT(plain, 0.1);
  EXPECT_LT(loss_with([] { return PowerSgdHook(); }, DType::kF64), 2 * plain);
  EXPECT_LT(loss_with([] { return PowerSgdHook({.rank = 2}); }, DType::kF32),
            2 * plain);
  EXPECT_LT(loss_with([] { return TopKHook(0.1); }, DType::kF32), 2 * plain);
}

// y = sum(a) * x + sum(b) * x, or without b.
class TwoParts final : public nn::Module {
 public:
  explicit TwoParts(double value, int64_t length = 3)
      : a_(Tensor::Full({length}, value)),
        b_(Tensor::Full({2}, value)),
        buffer_(Tensor::Full({2}, value)) {
    EXPECT_THAT(autograd::SetRequiresGrad(a_), IsOk());
    EXPECT_THAT(autograd::SetRequiresGrad(b_), IsOk());
    RegisterParameter("a", &a_);
    RegisterParameter("b", &b_);
    RegisterBuffer("buffer", &buffer_);
  }

  absl::StatusOr<Tensor> Forward(double x, bool with_a, bool with_b) const {
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
  Tensor& buffer() { return buffer_; }

 private:
  Tensor a_;
  Tensor b_;
  Tensor buffer_;
};

absl::Status Pass(DistributedDataParallel& parallel, const TwoParts& model,
                  double x, bool with_a = true, bool with_b = true) {
  ASSIGN_OR_RETURN(const Tensor y, parallel.Forward([&] {
    return model.Forward(x, with_a, with_b);
  }));
  return autograd::Backward(y);
}

std::vector<float> Values(const Tensor& tensor) {
  return tensor.defined() ? tensor.ToVector<float>() : std::vector<float>();
}

TEST(DistributedDataParallelTest, AllRanksBeginWithTheModelOfRankZero) {
  RunRanks(3, [](ProcessGroup& group) {
    TwoParts model(group.rank() + 5);
    const auto parallel = DistributedDataParallel::Create(model, group);
    ASSERT_THAT(parallel, IsOk());
    EXPECT_THAT(Values(model.a()), ElementsAre(5, 5, 5));
    EXPECT_THAT(Values(model.buffer()), ElementsAre(5, 5));
    // Buffers of later passes too.
    model.buffer().data<float>()[1] = static_cast<float>(group.rank());
    ASSERT_THAT(Pass(**parallel, model, 1), IsOk());
    EXPECT_THAT(Values(model.buffer()), ElementsAre(5, 0));
  });
}

TEST(DistributedDataParallelTest, GradientsAreAveraged) {
  RunRanks(4, [](ProcessGroup& group) {
    TwoParts model(1);
    const auto parallel = DistributedDataParallel::Create(model, group);
    ASSERT_THAT(parallel, IsOk());
    // Several passes, which add up.
    for (int pass = 1; pass <= 3; ++pass) {
      ASSERT_THAT(Pass(**parallel, model, group.rank()), IsOk());
      EXPECT_THAT(Values(autograd::Grad(model.b())),
                  ElementsAre(1.5 * pass, 1.5 * pass));
    }
    model.ZeroGrad();
    ASSERT_THAT(Pass(**parallel, model, 2 * group.rank()), IsOk());
    EXPECT_THAT(Values(autograd::Grad(model.a())), ElementsAre(3, 3, 3));
  });
}

TEST(DistributedDataParallelTest, LocalPassesAddUp) {
  RunRanks(2, [](ProcessGroup& group) {
    TwoParts model(1);
    const auto parallel = DistributedDataParallel::Create(model, group);
    ASSERT_THAT(parallel, IsOk());
    for (int round = 0; round < 2; ++round) {
      model.ZeroGrad();
      {
        const DistributedDataParallel::NoSync no_sync(**parallel);
        ASSERT_THAT(Pass(**parallel, model, group.rank() + 1), IsOk());
        EXPECT_THAT(Values(autograd::Grad(model.b())),
                    ElementsAre(group.rank() + 1, group.rank() + 1));
      }
      ASSERT_THAT(Pass(**parallel, model, 10), IsOk());
      // (1 + 10 + 2 + 10) / 2.
      EXPECT_THAT(Values(autograd::Grad(model.b())), ElementsAre(11.5, 11.5));
    }
  });
}

TEST(DistributedDataParallelTest, UnusedParametersAreNamedAtOnce) {
  RunRanks(2, [](ProcessGroup& group) {
    TwoParts model(1);
    const auto parallel = DistributedDataParallel::Create(model, group);
    ASSERT_THAT(parallel, IsOk());
    EXPECT_THAT(
        (*parallel)->Forward([&] { return model.Forward(1, true, false); }),
        StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(": b;")));
    // The object is as before.
    EXPECT_THAT(Pass(**parallel, model, 1), IsOk());
  });
}

TEST(DistributedDataParallelTest, FindsUnusedParameters) {
  RunRanks(2, [](ProcessGroup& group) {
    TwoParts model(1);
    const auto parallel = DistributedDataParallel::Create(
        model, group, {.find_unused_parameters = true});
    ASSERT_THAT(parallel, IsOk());
    // Used on rank 1 only.
    ASSERT_THAT(Pass(**parallel, model, 3, true, group.rank() == 1), IsOk());
    EXPECT_THAT(Values(autograd::Grad(model.a())), ElementsAre(3, 3, 3));
    EXPECT_THAT(Values(autograd::Grad(model.b())), ElementsAre(1.5, 1.5));
    // Used nowhere.
    model.ZeroGrad();
    ASSERT_THAT(Pass(**parallel, model, 3, true, false), IsOk());
    EXPECT_FALSE(autograd::Grad(model.b()).defined());
    ASSERT_THAT(Pass(**parallel, model, 3, false, true), IsOk());
    EXPECT_THAT(Values(autograd::Grad(model.b())), ElementsAre(3, 3));
    EXPECT_THAT(Values(autograd::Grad(model.a())), ElementsAre(3, 3, 3));
  });
}

TEST(DistributedDataParallelTest, AStaticGraphMayLeaveParametersOut) {
  RunRanks(2, [](ProcessGroup& group) {
    TwoParts model(1);
    const auto parallel =
        DistributedDataParallel::Create(model, group, {.static_graph = true});
    ASSERT_THAT(parallel, IsOk());
    for (int pass = 0; pass < 3; ++pass) {
      model.ZeroGrad();
      ASSERT_THAT(Pass(**parallel, model, group.rank(), true, false), IsOk());
      EXPECT_THAT(Values(autograd::Grad(model.a())), ElementsAre(.5, .5, .5));
      EXPECT_FALSE(autograd::Grad(model.b()).defined());
    }
  });
}

TEST(DistributedDataParallelTest, RanksMayRunOutOfBatches) {
  constexpr int kBatches[] = {2, 0, 5, 3};
  for (const bool find_unused : {false, true}) {
    RunRanks(4, [&](ProcessGroup& group) {
      TwoParts model(1);
      const auto parallel = DistributedDataParallel::Create(
          model, group,
          {.bucket_bytes = 1,
           .first_bucket_bytes = 1,
           .find_unused_parameters = find_unused,
           .uneven_inputs = UnevenInputs::kAverageOverAll});
      ASSERT_THAT(parallel, IsOk());
      const int batches = kBatches[group.rank()];
      for (int batch = 0; batch < batches; ++batch) {
        model.ZeroGrad();
        ASSERT_THAT(Pass(**parallel, model, 4), IsOk());
        // Those that have batches, of 4 ranks: 3, 3, 2, 1, 1.
        const float expected = batch < 2 ? 3 : batch < 3 ? 2 : 1;
        EXPECT_THAT(Values(autograd::Grad(model.b())),
                    ElementsAre(expected, expected));
      }
      // A step that the other ranks do not take.
      model.buffer().data<float>()[0] = static_cast<float>(group.rank());
      ASSERT_THAT((*parallel)->Join(), IsOk());
      EXPECT_EQ(Values(model.buffer())[0], 2);
    });
  }
}

TEST(DistributedDataParallelTest, GradientsMayBeAveragedOverActiveRanks) {
  constexpr int kBatches[] = {2, 0, 5, 3};
  for (const bool find_unused : {false, true}) {
    RunRanks(4, [&](ProcessGroup& group) {
      TwoParts model(1);
      const auto parallel = DistributedDataParallel::Create(
          model, group,
          {.bucket_bytes = 1,
           .first_bucket_bytes = 1,
           .find_unused_parameters = find_unused,
           .uneven_inputs = UnevenInputs::kAverageOverActive});
      ASSERT_THAT(parallel, IsOk());
      const int batches = kBatches[group.rank()];
      for (int batch = 0; batch < batches; ++batch) {
        model.ZeroGrad();
        ASSERT_THAT(Pass(**parallel, model, 6 * group.rank()), IsOk());
        // Of the ranks that have batches: 0, 2 and 3; 2 and 3; 2.
        const float expected = batch < 2 ? 10 : batch < 3 ? 15 : 12;
        EXPECT_THAT(Values(autograd::Grad(model.b())),
                    ElementsAre(testing::FloatEq(expected),
                                testing::FloatEq(expected)));
      }
      ASSERT_THAT((*parallel)->Join(), IsOk());
    });
  }
}

TEST(DistributedDataParallelTest, TheFirstRankWithoutBatchesMayEndAll) {
  RunRanks(3, [](ProcessGroup& group) {
    TwoParts model(1);
    const auto parallel = DistributedDataParallel::Create(
        model, group, {.uneven_inputs = UnevenInputs::kEndForAll});
    ASSERT_THAT(parallel, IsOk());
    ASSERT_THAT(Pass(**parallel, model, 1), IsOk());
    const auto ended = StatusIs(
        absl::StatusCode::kOutOfRange,
        HasSubstr(
            "ends on all ranks: there are no more batches on ranks 0, 2"));
    EXPECT_THAT(
        group.rank() == 1 ? Pass(**parallel, model, 1) : (*parallel)->Join(),
        ended);
    // The ranks may go on together, and end together.
    ASSERT_THAT(Pass(**parallel, model, 1), IsOk());
    EXPECT_THAT((*parallel)->Join(), IsOk());
  });
}

TEST(DistributedDataParallelTest, RanksThatHaveJoinedSkipLocalPasses) {
  RunRanks(2, [](ProcessGroup& group) {
    TwoParts model(1);
    const auto parallel = DistributedDataParallel::Create(
        model, group, {.uneven_inputs = UnevenInputs::kAverageOverAll});
    ASSERT_THAT(parallel, IsOk());
    if (group.rank() == 1) {
      {
        const DistributedDataParallel::NoSync no_sync(**parallel);
        ASSERT_THAT(Pass(**parallel, model, 1), IsOk());
      }
      ASSERT_THAT(Pass(**parallel, model, 3), IsOk());
      EXPECT_THAT(Values(autograd::Grad(model.b())), ElementsAre(2, 2));
    }
    ASSERT_THAT((*parallel)->Join(), IsOk());
  });
  RunRanks(1, [](ProcessGroup& group) {
    TwoParts model(1);
    const auto parallel = DistributedDataParallel::Create(model, group);
    EXPECT_THAT((*parallel)->Join(),
                StatusIs(absl::StatusCode::kFailedPrecondition));
  });
}

TEST(DistributedDataParallelTest, WrongPassesAreRefused) {
  RunRanks(1, [](ProcessGroup& group) {
    TwoParts model(1);
    const auto parallel = DistributedDataParallel::Create(model, group);
    ASSERT_THAT(parallel, IsOk());
    ASSERT_THAT(Pass(**parallel, model, 1), IsOk());
    // Without Forward.
    EXPECT_THAT(autograd::Backward(*model.Forward(1, true, true)),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         HasSubstr("got a gradient")));
    // Forward without its backward pass.
    ASSERT_THAT(
        (*parallel)->Forward([&] { return model.Forward(1, true, true); }),
        IsOk());
    EXPECT_THAT(Pass(**parallel, model, 1),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         HasSubstr("gradients of 2 parameters: a, b")));
  });
}

TEST(DistributedDataParallelTest, OtherModelsAreRefusedOnAllRanks) {
  RunRanks(3, [](ProcessGroup& group) {
    TwoParts model(1, group.rank() == 2 ? 4 : 3);
    EXPECT_THAT(DistributedDataParallel::Create(model, group),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("rank 2 differs from that of rank 0: it has "
                                   "parameter a f32[4]")));
  });
}

TEST(DistributedDataParallelTest, BucketsFollowTheOrderOfTheGradients) {
  RunRanks(2, [](ProcessGroup& group) {
    TwoParts model(1);
    const auto parallel = DistributedDataParallel::Create(
        model, group, {.bucket_bytes = 1, .first_bucket_bytes = 1});
    ASSERT_THAT(parallel, IsOk());
    EXPECT_THAT((*parallel)->buckets(),
                ElementsAre(ElementsAre(1), ElementsAre(0)));
    std::vector<int> order;
    ASSERT_THAT(Pass(**parallel, model, 1), IsOk());
    ASSERT_THAT(Pass(**parallel, model, 1), IsOk());
    EXPECT_THAT((*parallel)->buckets().size(), 2u);
    EXPECT_THAT(Values(autograd::Grad(model.a())), ElementsAre(2, 2, 2));
  });
}

TEST(DistributedDataParallelTest, ReductionBeginsBeforeTheLastGradient) {
  RunRanks(1, [](ProcessGroup& group) {
    TwoParts model(1);
    std::vector<int> events;
    const auto parallel = DistributedDataParallel::Create(
        model, group,
        {.bucket_bytes = 1,
         .first_bucket_bytes = 1,
         .hook = [&](ProcessGroup& of, const GradientBucket& bucket) {
           events.push_back(bucket.index);
           EXPECT_EQ(bucket.is_last, bucket.index == 1);
           return AllReduceHook()(of, bucket);
         }});
    ASSERT_THAT(parallel, IsOk());
    for (const Tensor& each : {model.a(), model.b()}) {
      ASSERT_THAT(
          autograd::RegisterHook(each,
                                 [&](const Tensor&) -> absl::StatusOr<Tensor> {
                                   events.push_back(-1);
                                   return Tensor();
                                 }),
          IsOk());
    }
    ASSERT_THAT(Pass(**parallel, model, 1), IsOk());
    events.clear();
    // Rebuilt in the order of the first pass.
    ASSERT_THAT(Pass(**parallel, model, 1), IsOk());
    EXPECT_THAT(events, ElementsAre(-1, 0, -1, 1));
  });
}

// Its reduction begins when the backward pass ends.
TEST(DistributedDataParallelTest, TheLastOfTheDefaultBucketsIsSmall) {
  RunRanks(1, [](ProcessGroup& group) {
    constexpr int kLayers = 16;
    nn::Sequential model;
    tensor::Generator generator(0);
    for (int i = 0; i < kLayers; ++i) {
      auto layer = nn::Linear::Create({.in_features = 512, .out_features = 512},
                                      generator);
      ASSERT_THAT(layer, IsOk());
      model.Append(absl::StrCat("fc", i), *std::move(layer));
    }
    const auto parallel = DistributedDataParallel::Create(model, group);
    ASSERT_THAT(parallel, IsOk());
    // A weight and a bias.
    EXPECT_THAT((*parallel)->buckets().back(), ElementsAre(1, 0));
  });
}

}  // namespace
}  // namespace hawser::parallel
