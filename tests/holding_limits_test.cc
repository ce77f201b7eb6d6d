// Tests of the limits on references and distributed autograd contexts that one
// worker may create on another. Requests above a limit are rejected and leak
// nothing, and other workers are served.

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/testing/status_matchers.h"
#include "dist_autograd/context.h"
#include "dist_autograd/dist_autograd_service.h"
#include "dist_autograd/engine.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/agent/current_call.h"
#include "rpc/functions/function.h"
#include "rpc/testing/transport_test_param.h"
#include "rpc/wire/message_interceptor.h"
#include "rref/rref.h"
#include "rref/rref_service.h"
#include "tensor/tensor.h"
#include "tests/distributed_job.h"

namespace hawser::tests {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

using dist_autograd::Context;
using rref::RRef;
using Numbers = std::vector<RRef<int64_t>>;

constexpr size_t kMaxReferences = 3;
constexpr size_t kMaxContexts = 2;

inline constexpr rpc::Function<int64_t(int64_t)> kTwice{"holding.Twice"};
inline constexpr rpc::Function<Numbers(int64_t)> kMakeMany{"holding.MakeMany"};
inline constexpr rpc::Function<int64_t(RRef<int64_t>)> kFetch{"holding.Fetch"};
inline constexpr rpc::Function<Tensor(Tensor)> kSame{"holding.Same"};

class HoldingLimitsTest : public testing::TestWithParam<rpc::TransportParam> {
 protected:
  void SetUp() override {
    rpc::FunctionRegistry& r = job_.registry();
    ASSERT_THAT(r.Register(kTwice, [](int64_t x) { return 2 * x; }), IsOk());
    ASSERT_THAT(r.Register(kMakeMany, &MakeMany), IsOk());
    ASSERT_THAT(r.Register(kFetch, [](RRef<int64_t> x) { return x.ToHere(); }),
                IsOk());
    ASSERT_THAT(r.Register(kSame, [](Tensor x) { return x; }), IsOk());
    StartDistributed(
        job_, 3,
        {.references = {.limits = {.max_references_per_peer = kMaxReferences}},
         .autograd = {.limits = {.max_contexts_per_peer = kMaxContexts}}});
  }

  static absl::StatusOr<Numbers> MakeMany(int64_t count) {
    Numbers numbers;
    for (int64_t i = 0; i < count; ++i) {
      auto number =
          rref::MakeLocal<int64_t>(rpc::CurrentCall::Get()->agent(), i);
      if (!number.ok()) return number.status();
      numbers.push_back(*std::move(number));
    }
    return numbers;
  }

  void TearDown() override {
    if (!all_live_) return;
    for (const absl::Status& status : job_.ShutdownAll()) {
      EXPECT_THAT(status, IsOk());
    }
    for (int i = 0; i < 3; ++i) ExpectNothingLeft(job_.agent(i));
  }

  // Creates as many references as worker `holder` may have on worker 1.
  Numbers Fill(int holder) {
    Numbers numbers;
    for (size_t i = 0; i < kMaxReferences; ++i) {
      auto number = rref::Remote(job_.agent(holder), "w1", kTwice, 21);
      EXPECT_THAT(number, IsOk());
      EXPECT_THAT(number->ToHere(), IsOkAndHolds(42));
      numbers.push_back(*std::move(number));
    }
    return numbers;
  }

  rref::Protocol& OwnersProtocol() {
    return *job_.agent(1).service<rref::RRefService>()->protocol();
  }
  size_t ForksAtOwner() { return OwnersProtocol().counts().owner.remote_forks; }
  void AwaitForksAtOwner(size_t count) {
    while (ForksAtOwner() != count) std::this_thread::yield();
  }

  dist_autograd::Engine& engine(int i) {
    return *job_.agent(i)
                .service<dist_autograd::DistAutogradService>()
                ->engine();
  }
  void AwaitContexts(int i, size_t count) {
    while (engine(i).num_contexts() != count) std::this_thread::yield();
  }
  // Like ContextScope, of which a thread may have only one.
  std::shared_ptr<Context> Open(int i) {
    auto context = engine(i).CreateContext();
    EXPECT_THAT(context, IsOk());
    return *context;
  }
  absl::StatusOr<Tensor> CallIn(const std::shared_ptr<Context>& context,
                                int caller) {
    const dist_autograd::Engine::CurrentContext scope(context);
    return job_.agent(caller).Sync("w1", kSame, Tensor::Ones({2}));
  }

  static auto TooManyReferences(const char* worker) {
    return StatusIs(absl::StatusCode::kResourceExhausted,
                    AllOf(HasSubstr(std::string("worker '") + worker +
                                    "' has 3 references"),
                          HasSubstr("max_references_per_peer")));
  }

  bool all_live_ = true;
  rpc::TestJob job_{rpc::MakeTransportFactory(GetParam())};
};

TEST_P(HoldingLimitsTest, CreationBeyondTheLimitFailsUntilAReferenceEnds) {
  Numbers numbers = Fill(0);
  {
    auto refused = rref::Remote(job_.agent(0), "w1", kTwice, 1);
    ASSERT_THAT(refused, IsOk());
    EXPECT_THAT(refused->WhenConfirmed().Wait(), TooManyReferences("w0"));
    EXPECT_THAT(refused->ToHere(), TooManyReferences("w0"));
  }
  EXPECT_EQ(ForksAtOwner(), kMaxReferences);
  // Other workers have separate limits.
  const Numbers others = Fill(2);
  numbers.pop_back();
  AwaitForksAtOwner(2 * kMaxReferences - 1);
  auto again = rref::Remote(job_.agent(0), "w1", kTwice, 3);
  ASSERT_THAT(again, IsOk());
  EXPECT_THAT(again->ToHere(), IsOkAndHolds(6));
}

TEST_P(HoldingLimitsTest, ResultWithMoreReferencesIsRejectedWithoutLeaks) {
  EXPECT_THAT(job_.agent(0).Sync("w1", kMakeMany, kMaxReferences + 1),
              TooManyReferences("w0"));
  // The second audit finds the references that were packed before the rejected
  // one. Periodic audits as short as a test requires would also end references
  // that arrive late.
  OwnersProtocol().Audit();
  OwnersProtocol().Audit();
  AwaitForksAtOwner(0);
  const auto many = job_.agent(0).Sync("w1", kMakeMany, kMaxReferences);
  ASSERT_THAT(many, IsOk());
  EXPECT_THAT(many->back().ToHere(), IsOkAndHolds(2));
}

TEST_P(HoldingLimitsTest, ReferenceSentToAWorkerAtItsLimitFailsTheCall) {
  const Numbers theirs = Fill(2);
  auto mine = rref::Remote(job_.agent(0), "w1", kTwice, 2);
  ASSERT_THAT(mine, IsOk());
  EXPECT_THAT(job_.agent(0).Sync("w2", kFetch, *mine), TooManyReferences("w2"));
  EXPECT_THAT(mine->ToHere(), IsOkAndHolds(4));
}

TEST_P(HoldingLimitsTest, DeathOfAWorkerReleasesItsReferences) {
  all_live_ = false;
  const Numbers numbers = Fill(0);
  EXPECT_THAT(CallIn(Open(0), 0), IsOk());
  job_.owned(0)->Shutdown(false).IgnoreError();
  AwaitForksAtOwner(0);
  AwaitContexts(1, 0);
}

TEST_P(HoldingLimitsTest, ContextBeyondTheLimitIsRejectedUntilOneEnds) {
  const auto first = Open(0), second = Open(0), third = Open(0);
  EXPECT_THAT(CallIn(first, 0), IsOk());
  EXPECT_THAT(CallIn(second, 0), IsOk());
  EXPECT_THAT(CallIn(third, 0),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("worker 'w0' has 2 distributed"),
                             HasSubstr("max_contexts_per_peer"))));
  EXPECT_EQ(engine(1).num_contexts(), kMaxContexts);
  // Existing contexts can be used, and other workers have separate limits.
  EXPECT_THAT(CallIn(second, 0), IsOk());
  const auto of_another = Open(2);
  EXPECT_THAT(CallIn(of_another, 2), IsOk());
  engine(2).ReleaseContext(of_another->id());
  engine(0).ReleaseContext(first->id());
  AwaitContexts(1, kMaxContexts - 1);
  EXPECT_THAT(CallIn(third, 0), IsOk());
  engine(0).ReleaseContext(second->id());
  engine(0).ReleaseContext(third->id());
}

TEST_P(HoldingLimitsTest, ContextOfAnUnknownCreatorEndsWithItsSender) {
  all_live_ = false;
  rpc::AutogradMetadata metadata;
  metadata.context_id = uint64_t{99} << 48;
  metadata.context_incarnation = rpc::Incarnation{99};
  ASSERT_THAT(engine(1).OnReceiveRequest(job_.agent(0).info(), metadata, {}),
              IsOk());
  ASSERT_EQ(engine(1).num_contexts(), 1u);
  job_.owned(0)->Shutdown(false).IgnoreError();
  AwaitContexts(1, 0);
}

INSTANTIATE_TEST_SUITE_P(Transports, HoldingLimitsTest,
                         testing::ValuesIn(rpc::kTransportParams),
                         rpc::TransportParamName());

}  // namespace
}  // namespace hawser::tests
