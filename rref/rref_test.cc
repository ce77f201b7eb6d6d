// References between real agents, over each transport.

#include "rref/rref.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/future.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/agent/current_call.h"
#include "rpc/testing/transport_test_param.h"
#include "rref/rref_service.h"
#include "tensor/tensor.h"

namespace hawser::rref {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Counts its instances. Cannot be encoded.
struct Resource {
  static constexpr std::string_view kTypeName = "rref_test.Resource";

  explicit Resource(int64_t number) : value(number) { ++live; }
  Resource(Resource&& other) noexcept : value(other.value) { ++live; }
  ~Resource() { --live; }

  int64_t value;
  static std::atomic<int> live;
};
std::atomic<int> Resource::live{0};

inline constexpr rpc::Function<int64_t(int64_t)> kTwice{"rref_test.Twice"};
inline constexpr rpc::Function<int64_t(int64_t)> kFail{"rref_test.Fail"};
inline constexpr rpc::Function<int64_t(int64_t)> kFailAtLength{
    "rref_test.FailAtLength"};
inline constexpr rpc::Function<int64_t(int64_t)> kWaitForGate{
    "rref_test.WaitForGate"};
inline constexpr rpc::Function<Resource(int64_t)> kMakeResource{
    "rref_test.MakeResource"};
inline constexpr rpc::Function<int64_t(RRef<Resource>)> kReadResource{
    "rref_test.ReadResource"};
inline constexpr rpc::Function<int64_t(RRef<int64_t>)> kFetch{
    "rref_test.Fetch"};
inline constexpr rpc::Function<void(RRef<int64_t>)> kKeep{"rref_test.Keep"};
inline constexpr rpc::Function<int64_t(int64_t)> kForPs{"rref_test.ForPs"};
inline constexpr rpc::Function<RRef<int64_t>()> kTakeKept{"rref_test.TakeKept"};
inline constexpr rpc::Function<int64_t(RRef<int64_t>, std::string)> kFetchAt{
    "rref_test.FetchAt"};
inline constexpr rpc::Function<std::vector<RRef<int64_t>>(int64_t)> kMakeMany{
    "rref_test.MakeMany"};

class RRefTest : public testing::TestWithParam<rpc::TransportParam> {
 protected:
  void SetUp() override {
    rpc::FunctionRegistry& r = job_.registry();
    ASSERT_THAT(r.Register(kTwice, [](int64_t x) { return 2 * x; }), IsOk());
    ASSERT_THAT(r.Register(kForPs,
                           [this](int64_t x) {
                             ++num_for_ps_;
                             return 2 * x;
                           },
                           {.allowed_roles = {"ps"}}),
                IsOk());
    ASSERT_THAT(r.Register(kFail,
                           [](int64_t) -> absl::StatusOr<int64_t> {
                             return absl::OutOfRangeError("no such number");
                           }),
                IsOk());
    ASSERT_THAT(
        r.Register(kFailAtLength,
                   [](int64_t) -> absl::StatusOr<int64_t> {
                     return absl::OutOfRangeError(std::string(1'000'000, 'x'));
                   }),
        IsOk());
    ASSERT_THAT(
        r.Register(kWaitForGate,
                   [this](int64_t x) {
                     return gate_future_.Then([x](absl::Status) { return x; });
                   }),
        IsOk());
    ASSERT_THAT(
        r.Register(kMakeResource, [](int64_t x) { return Resource(x); }),
        IsOk());
    ASSERT_THAT(
        r.Register(kReadResource,
                   [](RRef<Resource> resource) -> absl::StatusOr<int64_t> {
                     auto local = resource.LocalValue();
                     if (!local.ok()) return local.status();
                     return (*local)->value;
                   }),
        IsOk());
    ASSERT_THAT(r.Register(kFetch, [](RRef<int64_t> x) { return x.ToHere(); }),
                IsOk());
    ASSERT_THAT(r.Register(kFetchAt,
                           [](RRef<int64_t> x, std::string worker) {
                             rpc::Agent& agent =
                                 rpc::CurrentCall::Get()->agent();
                             return agent.Async(worker, kFetch, x);
                           }),
                IsOk());
    ASSERT_THAT(r.Register(kKeep,
                           [this](RRef<int64_t> x) {
                             kept_ = std::move(x);
                             return absl::OkStatus();
                           }),
                IsOk());
    ASSERT_THAT(
        r.Register(kTakeKept, [this] { return std::exchange(kept_, {}); }),
        IsOk());
    ASSERT_THAT(
        r.Register(kMakeMany,
                   [](int64_t n) -> absl::StatusOr<std::vector<RRef<int64_t>>> {
                     rpc::Agent& agent = rpc::CurrentCall::Get()->agent();
                     std::vector<RRef<int64_t>> many;
                     for (int64_t i = 0; i < n; ++i) {
                       auto one = MakeLocal<int64_t>(agent, i);
                       if (!one.ok()) return one.status();
                       many.push_back(*std::move(one));
                     }
                     return many;
                   }),
        IsOk());
    job_.StartAll(3, [](int, rpc::AgentOptions& options) {
      options.services.push_back(std::make_unique<RRefService>());
    });
  }

  // References do not remain after a graceful shutdown.
  void TearDown() override {
    if (!check_end_) return;
    gate_.Set(absl::OkStatus());
    kept_ = {};
    for (const absl::Status& status : job_.ShutdownAll()) {
      EXPECT_THAT(status, IsOk());
    }
    for (int i = 0; i < 3; ++i) {
      const Protocol::Counts counts = CountsOf(i);
      EXPECT_EQ(counts.owner.owners, 0u) << "worker " << i;
      EXPECT_EQ(counts.user.users, 0u) << "worker " << i;
    }
    EXPECT_EQ(Resource::live, 0);
  }

  Protocol::Counts CountsOf(int i) {
    return job_.agent(i).service<RRefService>()->protocol()->counts();
  }

  rpc::Agent& agent(int i) { return job_.agent(i); }

  async::Promise<void> gate_;
  async::Future<void> gate_future_ = gate_.future();
  std::atomic<int> num_for_ps_{0};
  RRef<int64_t> kept_;
  bool check_end_ = true;
  rpc::TestJob job_{rpc::MakeTransportFactory(GetParam())};
};

TEST_P(RRefTest, UserFetchesTheValueItCreated) {
  auto rref = Remote(agent(0), "w1", kTwice, 21);
  ASSERT_THAT(rref, IsOk());
  EXPECT_EQ(rref->owner().name, "w1");
  EXPECT_FALSE(rref->is_owner());
  EXPECT_THAT(rref->ToHere(), IsOkAndHolds(42));
  EXPECT_THAT(rref->WhenConfirmed().Wait(), IsOk());
  EXPECT_TRUE(rref->confirmed());
}

TEST_P(RRefTest, FunctionForAnotherRoleIsRefused) {
  auto refused = Remote(agent(0), "w1", kForPs, 21);
  ASSERT_THAT(refused, IsOk());
  EXPECT_THAT(refused->ToHere(),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       AllOf(HasSubstr("'w0'"), HasSubstr("rref_test.ForPs"))));
  EXPECT_EQ(num_for_ps_, 0);
  // A worker may always call itself.
  auto own = Remote(agent(0), "w0", kForPs, 21);
  ASSERT_THAT(own, IsOk());
  EXPECT_THAT(own->ToHere(), IsOkAndHolds(42));
}

TEST_P(RRefTest, CreationOnSelfIsOwned) {
  auto rref = Remote(agent(0), "w0", kTwice, 21);
  ASSERT_THAT(rref, IsOk());
  EXPECT_TRUE(rref->is_owner());
  EXPECT_THAT(rref->ToHere(), IsOkAndHolds(42));
  EXPECT_THAT(rref->LocalValue(), IsOk());
  // Other workers can use it too.
  EXPECT_THAT(agent(0).Sync("w1", kFetch, *rref), IsOkAndHolds(42));
}

TEST_P(RRefTest, CreationOnSelfIsConfirmedWhenTheFunctionHasEnded) {
  auto rref = Remote(agent(0), "w0", kWaitForGate, 9);
  ASSERT_THAT(rref, IsOk());
  EXPECT_FALSE(rref->confirmed());
  const async::Future<void> confirmed = rref->WhenConfirmed();
  EXPECT_FALSE(confirmed.ready());
  gate_.Set(absl::OkStatus());
  EXPECT_THAT(confirmed.Wait(), IsOk());
  EXPECT_TRUE(rref->confirmed());
  EXPECT_THAT(rref->ToHere(), IsOkAndHolds(9));
  // An error of the function becomes the error of the value.
  auto failed = Remote(agent(0), "w0", kFail, 1);
  ASSERT_THAT(failed, IsOk());
  EXPECT_THAT(failed->WhenConfirmed().Wait(), IsOk());
  EXPECT_THAT(failed->ToHere(), StatusIs(absl::StatusCode::kOutOfRange));
}

TEST_P(RRefTest, CreationOnSelfThatFailedIsNotConfirmed) {
  static constexpr rpc::Function<int64_t(int64_t)> kNowhere{"rref_test.No"};
  auto rref = Remote(agent(0), "w0", kNowhere, 1);
  ASSERT_THAT(rref, IsOk());
  EXPECT_THAT(
      rref->WhenConfirmed().Wait(),
      StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("creation")));
  EXPECT_FALSE(rref->confirmed());
  EXPECT_THAT(rref->ToHere(), StatusIs(absl::StatusCode::kUnimplemented));
}

TEST_P(RRefTest, ObjectThatCannotBeEncodedIsUsedOnItsOwner) {
  auto rref = Remote(agent(0), "w1", kMakeResource, 7);
  ASSERT_THAT(rref, IsOk());
  EXPECT_THAT(agent(0).Sync("w1", kReadResource, *rref), IsOkAndHolds(7));
  EXPECT_GE(Resource::live, 1);
  EXPECT_THAT(agent(0).Sync("w2", kReadResource, *rref),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       testing::AllOf(testing::HasSubstr("'w1'"),
                                      testing::HasSubstr("'w2'"))));
}

TEST_P(RRefTest, OwnerSharesWithUser) {
  auto rref = MakeLocal<int64_t>(agent(0), 5);
  ASSERT_THAT(rref, IsOk());
  EXPECT_THAT(agent(0).Sync("w1", kFetch, *rref), IsOkAndHolds(5));
  EXPECT_THAT(agent(0).Sync("w0", kFetch, *rref), IsOkAndHolds(5));
}

TEST_P(RRefTest, UserSharesWithUserAndOwner) {
  auto rref = Remote(agent(0), "w1", kTwice, 2);
  ASSERT_THAT(rref, IsOk());
  EXPECT_THAT(agent(0).Sync("w2", kFetch, *rref), IsOkAndHolds(4));
  EXPECT_THAT(agent(0).Sync("w1", kFetch, *rref), IsOkAndHolds(4));
  // The receiver shares it again: with the owner, with a user and with its
  // sender.
  for (const char* worker : {"w0", "w1", "w2"}) {
    EXPECT_THAT(agent(0).Sync("w2", kFetchAt, *rref, worker), IsOkAndHolds(4));
  }
}

TEST_P(RRefTest, CopyOutlivesItsParent) {
  {
    auto rref = Remote(agent(0), "w1", kTwice, 2);
    ASSERT_THAT(rref, IsOk());
    ASSERT_THAT(agent(0).Sync("w2", kKeep, *rref), IsOk());
  }
  auto back = agent(0).Sync("w2", kTakeKept);
  ASSERT_THAT(back, IsOk());
  EXPECT_THAT(back->ToHere(), IsOkAndHolds(4));
}

TEST_P(RRefTest, ReplyContainsManyReferences) {
  auto many = agent(0).Sync("w1", kMakeMany, 50);
  ASSERT_THAT(many, IsOk());
  for (int64_t i = 0; i < 50; ++i) {
    EXPECT_THAT((*many)[i].ToHere(), IsOkAndHolds(i));
  }
}

TEST_P(RRefTest, FetchBeforeCreationWaits) {
  auto rref = Remote(agent(0), "w1", kWaitForGate, 9);
  ASSERT_THAT(rref, IsOk());
  async::Future<int64_t> fetch = rref->ToHereAsync();
  EXPECT_THAT(rref->ToHere(absl::Milliseconds(20)),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_FALSE(fetch.ready());
  EXPECT_FALSE(rref->confirmed());
  gate_.Set(absl::OkStatus());
  EXPECT_THAT(fetch.Wait(), IsOkAndHolds(9));
  EXPECT_THAT(rref->ToHere(), IsOkAndHolds(9));
}

TEST_P(RRefTest, EachFetchReturnsTheErrorOfTheFunction) {
  auto rref = Remote(agent(0), "w1", kFail, 1);
  ASSERT_THAT(rref, IsOk());
  EXPECT_THAT(rref->WhenConfirmed().Wait(), IsOk());
  EXPECT_THAT(rref->ToHere(), StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_THAT(agent(0).Sync("w2", kFetch, *rref),
              StatusIs(absl::StatusCode::kOutOfRange));
}

// As for calls.
TEST_P(RRefTest, LongErrorsAreTruncated) {
  auto rref = Remote(agent(0), "w1", kFailAtLength, 1);
  ASSERT_THAT(rref, IsOk());
  const absl::Status error = rref->ToHere().status();
  EXPECT_THAT(error, StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_LT(error.message().size(), 2000u);
}

TEST_P(RRefTest, CreationTimeoutIsKeptWithTheReference) {
  auto rref = Remote(agent(0), "w1", {.timeout = absl::Milliseconds(30)},
                     kWaitForGate, 9);
  ASSERT_THAT(rref, IsOk());
  // A fetch with a longer timeout fails immediately.
  async::Future<int64_t> fetch = rref->ToHereAsync();
  EXPECT_THAT(rref->WhenConfirmed().Wait(),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_THAT(fetch.Wait(), StatusIs(absl::StatusCode::kDeadlineExceeded,
                                     testing::HasSubstr("creation")));
  EXPECT_THAT(rref->ToHere(), StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_THAT(agent(0).Sync("w2", kFetch, *rref),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
}

TEST_P(RRefTest, UnregisteredFunctionIsKeptWithTheReference) {
  static constexpr rpc::Function<int64_t(int64_t)> kNowhere{"rref_test.No"};
  auto rref = Remote(agent(0), "w1", kNowhere, 1);
  ASSERT_THAT(rref, IsOk());
  EXPECT_THAT(rref->ToHere(), StatusIs(absl::StatusCode::kUnimplemented));
  EXPECT_THAT(rref->WhenConfirmed().Wait(),
              StatusIs(absl::StatusCode::kUnimplemented));
}

TEST_P(RRefTest, UnknownWorkerIsReportedImmediately) {
  EXPECT_THAT(Remote(agent(0), "nobody", kTwice, 1),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST_P(RRefTest, EmptyReferenceCannotBeSent) {
  EXPECT_THAT(agent(0).Sync("w1", kFetch, RRef<int64_t>()),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_P(RRefTest, ValueOfAnotherTypeIsRefused) {
  auto rref = MakeLocal<int64_t>(agent(1), 5);
  ASSERT_THAT(rref, IsOk());
  const RRef<std::string> wrong(rref->reference());
  EXPECT_THAT(wrong.ToHere(), StatusIs(absl::StatusCode::kInvalidArgument,
                                       testing::HasSubstr("int64")));
}

TEST_P(RRefTest, ToHereAtTheOwnerReturnsTheValueItself) {
  const Tensor t = Tensor::Ones({3});
  auto rref = MakeLocal<Tensor>(agent(0), t);
  ASSERT_THAT(rref, IsOk());
  auto here = rref->ToHere();
  ASSERT_THAT(here, IsOk());
  EXPECT_TRUE(here->is_same(t));
}

TEST_P(RRefTest, ReferenceOutlivesItsWorker) {
  check_end_ = false;
  auto rref = Remote(agent(0), "w1", kTwice, 2);
  ASSERT_THAT(rref, IsOk());
  EXPECT_THAT(rref->ToHere(), IsOkAndHolds(4));
  for (const absl::Status& status : job_.ShutdownAll()) {
    EXPECT_THAT(status, IsOk());
  }
  EXPECT_THAT(rref->ToHere(), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(MakeLocal<int64_t>(agent(0), 1),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  job_.StopAll();
}

TEST_P(RRefTest, ErrorOfALostOwnerNamesIt) {
  check_end_ = false;
  auto rref = Remote(agent(0), "w1", kTwice, 2);
  auto other = Remote(agent(0), "w1", kWaitForGate, 2);
  ASSERT_THAT(rref, IsOk());
  ASSERT_THAT(other, IsOk());
  EXPECT_THAT(rref->ToHere(), IsOkAndHolds(4));
  job_.owned(1)->Shutdown(false).IgnoreError();
  EXPECT_THAT(other->WhenConfirmed().Wait(), testing::Not(IsOk()));
  EXPECT_THAT(rref->ToHere(), StatusIs(absl::StatusCode::kUnavailable,
                                       testing::HasSubstr("w1")));
}

INSTANTIATE_TEST_SUITE_P(Transports, RRefTest,
                         testing::ValuesIn(rpc::kTransportParams),
                         rpc::TransportParamName());

}  // namespace
}  // namespace hawser::rref
