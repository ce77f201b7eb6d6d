// Tests of the error of a backward pass that fails on one of several workers.
// It is the same whichever message reaches the root worker first.

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/status_macros.h"
#include "async/testing/status_matchers.h"
#include "autograd/node.h"
#include "autograd/ops/elementwise.h"
#include "autograd/variable.h"
#include "dist_autograd/dist_autograd.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/agent/current_call.h"
#include "rpc/errors/error_detail.h"
#include "rpc/functions/function.h"
#include "rpc/testing/agent_test_fixture.h"
#include "tensor/tensor.h"
#include "tests/distributed_job.h"

namespace hawser::tests {
namespace {

using dist_autograd::ContextScope;
using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;

constexpr char kGradientPath[] = "/hawser.v1.DistAutogradService/Gradient";
constexpr char kAbortPath[] = "/hawser.v1.DistAutogradService/AbortPass";

inline constexpr rpc::Function<Tensor(Tensor)> kSquare{"failure.Square"};
// The identity function, with a backward pass that fails.
inline constexpr rpc::Function<Tensor(Tensor)> kBroken{"failure.Broken"};
// Calls kBroken on worker 2.
inline constexpr rpc::Function<Tensor(Tensor)> kThrough{"failure.Through"};

class BrokenNode final : public autograd::Node {
 public:
  explicit BrokenNode(autograd::Edge edge) : Node({std::move(edge)}) {}
  std::string_view name() const override { return "BrokenNode"; }
  absl::StatusOr<std::vector<Tensor>> Apply(std::vector<Tensor>) override {
    return absl::DataLossError("failure of the test");
  }
};

absl::StatusOr<Tensor> Broken(const Tensor& x) {
  ASSIGN_OR_RETURN(Tensor y, x.Detach().Clone());
  autograd::SetHistory(y, std::make_shared<BrokenNode>(autograd::GradEdge(x)),
                       0);
  return y;
}

class BackwardFailureTest : public testing::Test {
 protected:
  void SetUp() override {
    rpc::FunctionRegistry& r = job_.registry();
    ASSERT_THAT(
        r.Register(kSquare, [](Tensor x) { return autograd::Mul(x, x); }),
        IsOk());
    ASSERT_THAT(r.Register(kBroken, Broken), IsOk());
    ASSERT_THAT(r.Register(kThrough,
                           [](Tensor x) {
                             return rpc::CurrentCall::Get()->agent().Async(
                                 "w2", kBroken, x);
                           }),
                IsOk());
    StartDistributed(job_, 3);
  }
  void TearDown() override { job_.StopAll(); }

  rpc::Agent& agent(int i = 0) { return job_.agent(i); }

  // Runs a pass that fails on worker 2, which worker 0 calls both directly and
  // through worker 1. Returns the error.
  absl::Status Fail() {
    ASSIGN_OR_RETURN(const std::unique_ptr<ContextScope> context,
                     ContextScope::Open(agent()));
    const Tensor leaf = Tensor::Full({1}, 3);
    RETURN_IF_ERROR(autograd::SetRequiresGrad(leaf));
    ASSIGN_OR_RETURN(const Tensor direct, agent().Sync("w2", kSquare, leaf));
    ASSIGN_OR_RETURN(const Tensor through, agent().Sync("w1", kThrough, leaf));
    ASSIGN_OR_RETURN(const Tensor loss, autograd::Mul(direct, through));
    return dist_autograd::Backward(agent(), context->id(), {loss});
  }

  // Expects that the error names worker 2 as its origin.
  void ExpectOrigin() {
    const std::string text = std::string(Fail().message());
    EXPECT_THAT(text, testing::HasSubstr("backward on worker 'w2'"));
    for (int i = 0; i < 50; ++i) {
      const absl::Status error = Fail();
      ASSERT_THAT(error, StatusIs(absl::StatusCode::kDataLoss, text));
      const auto detail = rpc::GetErrorDetail(error);
      ASSERT_TRUE(detail.has_value()) << error;
      ASSERT_EQ(detail->worker, "w2") << error;
      ASSERT_EQ(detail->incarnation, agent(2).info().incarnation);
    }
  }

  static rpc::InprocFaults Delay(absl::Duration least, absl::Duration most) {
    return {.min_delay = least, .max_delay = most};
  }

  rpc::TestJob job_;
};

TEST_F(BackwardFailureTest, NamesTheOriginIfAbortsArriveFirst) {
  job_.network().SetMethodFaults(
      kGradientPath, Delay(absl::Milliseconds(5), absl::Milliseconds(5)));
  ExpectOrigin();
}

TEST_F(BackwardFailureTest, NamesTheOriginIfRepliesArriveFirst) {
  job_.network().SetMethodFaults(
      kAbortPath, Delay(absl::Milliseconds(5), absl::Milliseconds(5)));
  ExpectOrigin();
}

TEST_F(BackwardFailureTest, NamesTheOriginInAnyOrder) {
  for (const char* path : {kGradientPath, kAbortPath}) {
    job_.network().SetMethodFaults(
        path, Delay(absl::ZeroDuration(), absl::Milliseconds(2)));
  }
  ExpectOrigin();
}

TEST_F(BackwardFailureTest, NamesTheRootWorkerIfItFails) {
  const auto context = ContextScope::Open(agent());
  ASSERT_THAT(context, IsOk());
  const Tensor leaf = Tensor::Full({1}, 3);
  ASSERT_THAT(autograd::SetRequiresGrad(leaf), IsOk());
  const auto squared = agent().Sync("w1", kSquare, leaf);
  ASSERT_THAT(squared, IsOk());
  const auto loss = Broken(*squared);
  ASSERT_THAT(loss, IsOk());
  const absl::Status error =
      dist_autograd::Backward(agent(), (*context)->id(), {*loss});
  EXPECT_THAT(error, StatusIs(absl::StatusCode::kDataLoss));
  const auto detail = rpc::GetErrorDetail(error);
  ASSERT_TRUE(detail.has_value());
  EXPECT_EQ(detail->worker, "w0");
}

}  // namespace
}  // namespace hawser::tests
