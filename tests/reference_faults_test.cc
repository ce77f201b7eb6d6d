// Tests of references, backward passes and optimizer steps while the network
// drops, duplicates and delays their messages. Results are correct or errors
// are clean; values are neither freed early nor leaked.

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/random_source.h"
#include "async/testing/nightly.h"
#include "async/testing/status_matchers.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/variable.h"
#include "dist_autograd/dist_autograd.h"
#include "dist_optim/distributed_optimizer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "optim/sgd.h"
#include "rpc/agent/current_call.h"
#include "rpc/functions/function.h"
#include "rpc/testing/agent_test_fixture.h"
#include "rref/rref.h"
#include "tensor/tensor.h"
#include "tests/distributed_job.h"

namespace hawser::tests {
namespace {

using ::hawser::async::IsOk;
using rref::RRef;

constexpr int kWorkers = 3;
// Longer than a busy machine delays a message.
constexpr absl::Duration kLongAuditInterval = absl::Seconds(20);

// Type that counts its existing objects.
struct Counted {
  static constexpr std::string_view kTypeName = "tests.Counted";

  explicit Counted(int64_t number) : value(number) { ++live; }
  Counted(Counted&& other) noexcept : value(other.value) { ++live; }
  ~Counted() { --live; }

  int64_t value;
  static std::atomic<int> live;
};
std::atomic<int> Counted::live{0};

inline constexpr rpc::Function<Counted(int64_t)> kMake{"faults.Make"};
inline constexpr rpc::Function<int64_t(RRef<Counted>)> kRead{"faults.Read"};
// Reads the value at the owner, through the worker that is called.
inline constexpr rpc::Function<int64_t(RRef<Counted>)> kRelay{"faults.Relay"};
inline constexpr rpc::Function<Tensor(double)> kMakeParameter{
    "faults.MakeParameter"};
inline constexpr rpc::Function<Tensor(Tensor)> kSquare{"faults.Square"};

class ReferenceFaultsTest : public testing::TestWithParam<uint64_t> {
 protected:
  void SetUp() override {
    rpc::FunctionRegistry& r = job_.registry();
    ASSERT_THAT(r.Register(kMake, [](int64_t x) { return Counted(x); }),
                IsOk());
    ASSERT_THAT(r.Register(kRead,
                           [](RRef<Counted> x) -> absl::StatusOr<int64_t> {
                             auto local = x.LocalValue();
                             if (!local.ok()) return local.status();
                             return (*local)->value;
                           }),
                IsOk());
    ASSERT_THAT(r.Register(kRelay,
                           [](RRef<Counted> x) {
                             rpc::Agent& agent =
                                 rpc::CurrentCall::Get()->agent();
                             return agent.Async(x.owner().name, kRead, x);
                           }),
                IsOk());
    ASSERT_THAT(r.Register(kMakeParameter,
                           [](double value) -> absl::StatusOr<Tensor> {
                             Tensor t = Tensor::Full({4}, value);
                             absl::Status status = autograd::SetRequiresGrad(t);
                             if (!status.ok()) return status;
                             return t;
                           }),
                IsOk());
    ASSERT_THAT(
        r.Register(kSquare, [](Tensor x) { return autograd::Mul(x, x); }),
        IsOk());
  }

  // A call with a reference may fail if it arrives later than `audit_interval`.
  void Start(absl::Duration audit_interval) {
    DistributedJobOptions options;
    options.references.control_attempt_timeout = absl::Milliseconds(20);
    options.references.audit_interval = audit_interval;
    options.autograd.control_attempt_timeout = absl::Milliseconds(20);
    options.autograd.gradient_attempt_timeout = absl::Milliseconds(40);
    StartDistributed(job_, kWorkers, options);
  }

  // Messages that the tested layers retry may be lost, late or duplicated.
  // Users' calls may be late or duplicated.
  void AddFaults() {
    rpc::InprocFaults lossy;
    lossy.drop_request = 0.25;
    lossy.drop_reply = 0.25;
    lossy.duplicate_request = 0.25;
    lossy.duplicate_reply = 0.1;
    lossy.max_delay = absl::Milliseconds(3);
    for (const char* method :
         {"RRefService/Control", "DistAutogradService/Gradient",
          "DistAutogradService/AbortPass",
          "DistAutogradService/ReleaseContext"}) {
      job_.network().SetMethodFaults(std::string("/hawser.v1.") + method,
                                     lossy);
    }
    rpc::InprocFaults late = lossy;
    late.drop_request = 0;
    late.drop_reply = 0;
    for (const char* method :
         {"WorkerService/Call", "RRefService/Create", "RRefService/Fetch",
          "DistOptimService/CreateOptimizer", "DistOptimService/Step"}) {
      job_.network().SetMethodFaults(std::string("/hawser.v1.") + method, late);
    }
  }

  void ExpectCleanEnd() {
    job_.network().SetFaults({});
    for (const absl::Status& status : job_.ShutdownAll()) {
      EXPECT_THAT(status, IsOk());
    }
    for (int i = 0; i < kWorkers; ++i) ExpectNothingLeft(job_.agent(i));
    EXPECT_EQ(Counted::live, 0);
  }

  async::RandomSource random_{GetParam()};
  rpc::TestJob job_;
};

TEST_P(ReferenceFaultsTest, ReferencesStayUsableWithoutLeaks) {
  Start(kLongAuditInterval);
  AddFaults();
  std::vector<RRef<Counted>> held;
  for (int step = 0; step < 30; ++step) {
    rpc::Agent& agent = job_.agent(static_cast<int>(random_.Below(kWorkers)));
    const int64_t number = static_cast<int64_t>(random_.Below(1000));
    auto made = rref::Remote(
        agent, rpc::WorkerId(static_cast<int>(random_.Below(kWorkers))), kMake,
        number);
    ASSERT_THAT(made, IsOk());
    // Another worker reads the value at the owner.
    EXPECT_THAT(
        agent.Sync(rpc::WorkerId(static_cast<int>(random_.Below(kWorkers))),
                   kRelay, *made),
        async::IsOkAndHolds(number));
    if (random_.Uniform() < 0.5) held.push_back(*std::move(made));
    if (held.size() > 4) held.erase(held.begin());
  }
  held.clear();
  ExpectCleanEnd();
}

TEST_P(ReferenceFaultsTest, LostCallsOfUsersLeakNothing) {
  // Audits find the references in lost calls.
  Start(absl::Milliseconds(200));
  rpc::InprocFaults lossy;
  lossy.drop_request = 0.3;
  lossy.drop_reply = 0.3;
  job_.network().SetMethodFaults("/hawser.v1.WorkerService/Call", lossy);
  job_.network().SetMethodFaults("/hawser.v1.RRefService/Create", lossy);
  for (int step = 0; step < 20; ++step) {
    rpc::Agent& agent = job_.agent(static_cast<int>(random_.Below(kWorkers)));
    auto made = rref::Remote(
        agent, rpc::WorkerId(static_cast<int>(random_.Below(kWorkers))),
        {.timeout = absl::Milliseconds(40)}, kMake, step);
    ASSERT_THAT(made, IsOk());
    auto read =
        agent.Sync(rpc::WorkerId(static_cast<int>(random_.Below(kWorkers))),
                   {.timeout = absl::Milliseconds(40)}, kRelay, *made);
    EXPECT_EQ(read.value_or(step), step);
  }
  job_.network().SetMethodFaults("/hawser.v1.WorkerService/Call", {});
  job_.network().SetMethodFaults("/hawser.v1.RRefService/Create", {});
  ExpectCleanEnd();
}

TEST_P(ReferenceFaultsTest, TrainingGivesTheSameResults) {
  Start(kLongAuditInterval);
  AddFaults();
  rpc::Agent& trainer = job_.agent(0);
  {
    auto parameter = rref::Remote(trainer, "w1", kMakeParameter, 1.0);
    ASSERT_THAT(parameter, IsOk());
    auto optimizer = dist_optim::DistributedOptimizer::Create(
        trainer, optim::Sgd({.lr = 0.125}), {*parameter});
    ASSERT_THAT(optimizer, IsOk());
    float expected = 1;
    for (int step = 0; step < 4; ++step) {
      auto context = dist_autograd::ContextScope::Open(trainer);
      ASSERT_THAT(context, IsOk());
      auto here = parameter->ToHere();
      ASSERT_THAT(here, IsOk());
      auto square = trainer.Sync("w2", kSquare, *here);
      ASSERT_THAT(square, IsOk());
      // A result that the loss does not depend on.
      ASSERT_THAT(trainer.Sync("w1", kSquare, *here), IsOk());
      auto one =
          autograd::Mul(*square, Tensor::FromVector<float>({1, 0, 0, 0}, {4}));
      ASSERT_THAT(one, IsOk());
      auto loss = autograd::Sum(*one);
      ASSERT_THAT(loss, IsOk());
      ASSERT_THAT(dist_autograd::Backward(trainer, (*context)->id(), {*loss}),
                  IsOk());
      ASSERT_THAT((*optimizer)->Step((*context)->id()), IsOk());
      expected -= 0.125f * 2 * expected;
    }
    auto end = parameter->ToHere();
    ASSERT_THAT(end, IsOk());
    EXPECT_FLOAT_EQ(end->data<float>()[0], expected);
    EXPECT_FLOAT_EQ(end->data<float>()[1], 1);
  }
  ExpectCleanEnd();
}

INSTANTIATE_TEST_SUITE_P(Seeds, ReferenceFaultsTest,
                         testing::Range<uint64_t>(0,
                                                  async::NightlyOr(1000, 8)));

}  // namespace
}  // namespace hawser::tests
