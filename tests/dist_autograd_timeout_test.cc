// Tests of the timeouts of backward passes, in simulated time, so that they do
// not depend on the speed of the machine.

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/future.h"
#include "async/testing/status_matchers.h"
#include "autograd/ops/elementwise.h"
#include "autograd/variable.h"
#include "dist_autograd/dist_autograd.h"
#include "dist_autograd/dist_autograd_service.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/agent/agent_options.h"
#include "rpc/functions/function.h"
#include "rpc/testing/cluster_simulation.h"
#include "rref/rref.h"
#include "rref/rref_service.h"
#include "tensor/tensor.h"

namespace hawser::tests {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

inline constexpr rpc::Function<Tensor(Tensor)> kSquare{"autograd.Square"};
constexpr absl::Duration kTimeout = absl::Seconds(10);

class DistAutogradTimeoutTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(job_.registry().Register(
                    kSquare, [](Tensor x) { return autograd::Mul(x, x); }),
                IsOk());
    job_.StartTogether();
    ASSERT_EQ(job_.failure(), "");
  }

  template <class T>
  static async::Result<T> Now(const async::Future<T>& future) {
    if (!future.ready()) return absl::InternalError("not complete");
    return future.Wait();
  }
  absl::StatusOr<Tensor> Square(const Tensor& x) {
    const async::Future<Tensor> y = job_.agent(0)->Async("w1", kSquare, x);
    job_.Advance(absl::Seconds(1));
    return Now(y);
  }

  rpc::ClusterSimulation job_{
      /*seed=*/1,
      {.num_workers = 2, .group = true, .configure = [](rpc::AgentOptions& o) {
         o.services.push_back(std::make_unique<rref::RRefService>());
         o.services.push_back(
             std::make_unique<dist_autograd::DistAutogradService>());
       }}};
};

TEST_F(DistAutogradTimeoutTest, FastPassNamesAnUnusedResult) {
  rpc::Agent& agent = *job_.agent(0);
  auto context = dist_autograd::ContextScope::Open(agent);
  ASSERT_THAT(context, IsOk());
  const Tensor leaf = Tensor::Full({1}, 3);
  ASSERT_THAT(autograd::SetRequiresGrad(leaf), IsOk());
  const auto used = Square(leaf);
  ASSERT_THAT(used, IsOk());
  ASSERT_THAT(Square(leaf), IsOk());
  const async::Future<void> done = dist_autograd::BackwardAsync(
      agent, (*context)->id(), {*used},
      {.mode = dist_autograd::BackwardMode::kFast, .timeout = kTimeout});
  job_.Advance(kTimeout - absl::Seconds(1));
  EXPECT_FALSE(done.ready());
  job_.Advance(absl::Seconds(1));
  EXPECT_THAT(Now(done),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       AllOf(HasSubstr("'w1'"), HasSubstr("to worker 0"))));
  // The context can be used again.
  const async::Future<void> again =
      dist_autograd::BackwardAsync(agent, (*context)->id(), {*used});
  job_.Advance(absl::Seconds(1));
  EXPECT_THAT(Now(again),
              AnyOf(IsOk(), StatusIs(absl::StatusCode::kFailedPrecondition)));
}

TEST_F(DistAutogradTimeoutTest, NegativeTimeoutIsRejected) {
  rpc::Agent& agent = *job_.agent(0);
  auto context = dist_autograd::ContextScope::Open(agent);
  ASSERT_THAT(context, IsOk());
  const Tensor leaf = Tensor::Full({1}, 3);
  ASSERT_THAT(autograd::SetRequiresGrad(leaf), IsOk());
  const auto loss = Square(leaf);
  ASSERT_THAT(loss, IsOk());
  const auto refused =
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("negative"));
  EXPECT_THAT(Now(dist_autograd::BackwardAsync(agent, (*context)->id(), {*loss},
                                               {.timeout = -kTimeout})),
              refused);
  const auto here = rref::MakeLocal(agent, *loss);
  ASSERT_THAT(here, IsOk());
  EXPECT_THAT(dist_autograd::Backward(agent, (*context)->id(), *here,
                                      {.timeout = -kTimeout}),
              refused);
  // The graph was not consumed.
  const async::Future<void> done =
      dist_autograd::BackwardAsync(agent, (*context)->id(), {*loss});
  job_.Advance(absl::Seconds(1));
  EXPECT_THAT(Now(done), IsOk());
}

}  // namespace
}  // namespace hawser::tests
