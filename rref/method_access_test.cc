// Access to objects by methods, locks and fetches: docs/rref.md, G9.

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <type_traits>
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
#include "rref/access/locked_value.h"
#include "rref/method.h"
#include "rref/rref.h"
#include "rref/rref_service.h"

namespace hawser::rref {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::Each;
using ::testing::HasSubstr;

// Returns w1's number.
inline constexpr rpc::Function<RRef<int64_t>()> kShare{"access_test.Share"};
inline constexpr Method<int64_t(int64_t&, int64_t)> kAdd{"access_test.Add"};
// Adds 1; correct only if calls do not overlap.
inline constexpr Method<void(int64_t&)> kIncrement{"access_test.Increment"};
// Takes the number as const.
inline constexpr Method<int64_t(int64_t&)> kRead{"access_test.Read"};
// Has no access.
inline constexpr Method<int64_t(int64_t&)> kPeek{"access_test.Peek"};
// Adds 1 when the gate opens.
inline constexpr Method<int64_t(int64_t&)> kAddAtGate{"access_test.AddAtGate"};
// The first call completes with the second one.
inline constexpr Method<int64_t(int64_t&)> kMeet{"access_test.Meet"};
inline constexpr Method<void(int64_t&)> kThrow{"access_test.Throw"};
// Returns the codes of all ways to wait for the own object.
inline constexpr Method<std::vector<int>(int64_t&)> kWaitForItself{
    "access_test.WaitForItself"};
inline constexpr Method<std::vector<int>(int64_t&)> kReadAndWaitForItself{
    "access_test.ReadAndWaitForItself"};

class MethodAccessTest : public testing::TestWithParam<rpc::TransportParam> {
 protected:
  void SetUp() override {
    RegisterMethods(job_.registry());
    ASSERT_THAT(job_.registry().Register(kShare, [this] { return own_; }),
                IsOk());
    job_.StartAll(2, [](int, rpc::AgentOptions& options) {
      options.services.push_back(std::make_unique<RRefService>());
    });
    auto own = MakeLocal<int64_t>(job_.agent(1), 0);
    ASSERT_THAT(own, IsOk());
    own_ = *std::move(own);
    auto shared = job_.agent(0).Sync("w1", kShare);
    ASSERT_THAT(shared, IsOk());
    number_ = *std::move(shared);
  }

  void TearDown() override {
    number_ = own_ = RRef<int64_t>();
    for (const absl::Status& status : job_.ShutdownAll()) {
      EXPECT_THAT(status, IsOk());
    }
  }

  void RegisterMethods(rpc::FunctionRegistry& r) {
    const auto add = [](int64_t& number, int64_t n) { return number += n; };
    ASSERT_THAT(RegisterMethod(r, kAdd, add), IsOk());
    const auto increment = [](int64_t& number) {
      volatile int64_t next = number;
      for (int i = 0; i < 2000; ++i) next = next + 1;
      number = next - 1999;
    };
    ASSERT_THAT(RegisterMethod(r, kIncrement, increment), IsOk());
    const auto read = [](const int64_t& number) { return number; };
    ASSERT_THAT(RegisterMethod(r, kRead, read), IsOk());
    const auto peek = [](int64_t&) { return int64_t{-1}; };
    ASSERT_THAT(RegisterMethod<HoldAccess::kNever>(r, kPeek, peek), IsOk());
    const auto add_at_gate = [this](int64_t& number) {
      entered_.Set(absl::OkStatus());
      return gate_.future().Then([&number](absl::Status) { return ++number; });
    };
    ASSERT_THAT(RegisterMethod(r, kAddAtGate, add_at_gate), IsOk());
    const auto meet = [this](int64_t& number) {
      if (++number == 2) met_.Set(number);
      return met_.future();
    };
    ASSERT_THAT(RegisterMethod<HoldAccess::kUntilReturn>(r, kMeet, meet),
                IsOk());
    const auto fail = [](int64_t&) { throw std::out_of_range("no number"); };
    ASSERT_THAT(RegisterMethod(r, kThrow, fail), IsOk());
    const auto wait = [this](int64_t&) { return CodesOfWaits(); };
    ASSERT_THAT(RegisterMethod(r, kWaitForItself, wait), IsOk());
    const auto read_and_wait = [this](const int64_t&) {
      return CodesOfWaits();
    };
    ASSERT_THAT(RegisterMethod(r, kReadAndWaitForItself, read_and_wait),
                IsOk());
  }

  std::vector<int> CodesOfWaits() {
    rpc::Agent& agent = rpc::CurrentCall::Get()->agent();
    return {Sync(agent, own_, kAdd, 1).status().raw_code(),
            own_.ToHere().status().raw_code(),
            ToHereAll(std::vector<RRef<int64_t>>{own_}).status().raw_code(),
            own_.Lock().status().raw_code(),
            own_.LockShared().status().raw_code()};
  }

  async::Promise<void> entered_;
  async::Promise<void> gate_;
  async::Promise<int64_t> met_;
  rpc::TestJob job_{rpc::MakeTransportFactory(GetParam())};
  // The number of w1, at w1 and at w0.
  RRef<int64_t> own_;
  RRef<int64_t> number_;
};

INSTANTIATE_TEST_SUITE_P(All, MethodAccessTest,
                         testing::ValuesIn(rpc::kTransportParams),
                         rpc::TransportParamName());

TEST_P(MethodAccessTest, MethodsOfOneObjectDoNotOverlap) {
  std::vector<async::Future<void>> calls;
  for (int i = 0; i < 200; ++i) {
    calls.push_back(
        Async(job_.agent(i % 2), i % 2 == 0 ? number_ : own_, kIncrement));
  }
  for (const auto& call : calls) EXPECT_THAT(call.Wait(), IsOk());
  EXPECT_THAT(Sync(job_.agent(0), number_, kRead), IsOkAndHolds(200));
}

TEST_P(MethodAccessTest, MethodsAndFetchesWaitForALock) {
  async::Future<int64_t> sum;
  absl::StatusOr<RRef<int64_t>> kept;
  async::Future<int64_t> fetched;
  async::Future<int64_t> fetched_by_owner;
  {
    absl::StatusOr<LockedValue<int64_t>> locked = own_.Lock();
    ASSERT_THAT(locked, IsOk());
    sum = Async(job_.agent(0), number_, kAdd, 1);
    kept = Remote(job_.agent(0), number_, kAdd, 0);
    ASSERT_THAT(kept, IsOk());
    fetched = number_.ToHereAsync();
    fetched_by_owner = own_.ToHereAsync();
    // Calls that do not wait arrive later, but run now.
    for (int i = 0; i < 10; ++i) {
      EXPECT_THAT(Sync(job_.agent(0), number_, kPeek), IsOkAndHolds(-1));
    }
    **locked = 100;
  }
  EXPECT_THAT(sum.Wait(), IsOkAndHolds(101));
  EXPECT_THAT(kept->ToHere(), IsOkAndHolds(testing::Ge(100)));
  EXPECT_THAT(fetched.Wait(), IsOkAndHolds(testing::Ge(100)));
  EXPECT_THAT(fetched_by_owner.Wait(), IsOkAndHolds(testing::Ge(100)));
}

TEST_P(MethodAccessTest, MethodThatTakesAConstObjectSharesAccess) {
  async::Future<int64_t> sum;
  {
    const absl::StatusOr<LockedValue<const int64_t>> locked = own_.LockShared();
    ASSERT_THAT(locked, IsOk());
    EXPECT_THAT(Sync(job_.agent(0), number_, kRead), IsOkAndHolds(0));
    EXPECT_THAT(number_.ToHere(), IsOkAndHolds(0));
    EXPECT_THAT(own_.ToHere(), IsOkAndHolds(0));
    sum = Async(job_.agent(0), number_, kAdd, 1);
    for (int i = 0; i < 10; ++i) {
      EXPECT_THAT(Sync(job_.agent(0), number_, kPeek), IsOkAndHolds(-1));
    }
    EXPECT_EQ(**locked, 0);
  }
  EXPECT_THAT(sum.Wait(), IsOkAndHolds(1));
}

TEST_P(MethodAccessTest, AccessLastsUntilTheResultIsReady) {
  const async::Future<int64_t> sum = Async(job_.agent(0), number_, kAddAtGate);
  ASSERT_THAT(entered_.future().Wait(), IsOk());
  const async::Future<LockedValue<const int64_t>> locked =
      own_.LockSharedAsync();
  EXPECT_FALSE(locked.ready());
  gate_.Set(absl::OkStatus());
  EXPECT_THAT(sum.Wait(), IsOkAndHolds(1));
  ASSERT_THAT(locked.Wait(), IsOk());
  EXPECT_EQ(**locked.Wait(), 1);
}

TEST_P(MethodAccessTest, MethodMayEndItsAccessWhenItReturns) {
  const async::Future<int64_t> first = Async(job_.agent(0), number_, kMeet);
  const async::Future<int64_t> second = Async(job_.agent(1), own_, kMeet);
  EXPECT_THAT(first.Wait(), IsOkAndHolds(2));
  EXPECT_THAT(second.Wait(), IsOkAndHolds(2));
}

TEST_P(MethodAccessTest, MethodThatThrowsEndsItsAccess) {
  EXPECT_THAT(Sync(job_.agent(0), number_, kThrow),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("no number")));
  EXPECT_THAT(Sync(job_.agent(0), number_, kAdd, 1), IsOkAndHolds(1));
}

TEST_P(MethodAccessTest, WaitOfAMethodForItsOwnObjectIsAnError) {
  const int refused = static_cast<int>(absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Sync(job_.agent(0), number_, kWaitForItself),
              IsOkAndHolds(Each(refused)));
  EXPECT_THAT(Sync(job_.agent(0), number_, kReadAndWaitForItself),
              IsOkAndHolds(Each(refused)));
  // The thread may wait for it after the method.
  EXPECT_THAT(Sync(job_.agent(1), own_, kAdd, 1), IsOkAndHolds(1));
}

TEST_P(MethodAccessTest, OnlyTheOwnerLocks) {
  EXPECT_THAT(number_.Lock(), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(RRef<double>(own_.reference()).LockShared(),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

class Account {
 public:
  int64_t Balance() const { return balance_; }
  void Pay(int64_t amount) { balance_ += amount; }

 private:
  int64_t balance_ = 0;
};

template <class... A, class F>
constexpr MethodAccess AccessOf(F) {
  return internal::AccessOf<HoldAccess::kUntilResult, F, Account, A...>();
}

TEST(MethodAccessOfTest, ConstShowsInTheCallable) {
  EXPECT_EQ(AccessOf(&Account::Balance), MethodAccess::kShared);
  EXPECT_EQ(AccessOf<int64_t>(&Account::Pay), MethodAccess::kExclusive);
  EXPECT_EQ(AccessOf([](const Account&) {}), MethodAccess::kShared);
  EXPECT_EQ(AccessOf([](Account) {}), MethodAccess::kShared);
  EXPECT_EQ(AccessOf([](Account&) {}), MethodAccess::kExclusive);
  EXPECT_EQ(AccessOf([](auto& account) { account.Pay(1); }),
            MethodAccess::kExclusive);
  EXPECT_EQ((internal::AccessOf<HoldAccess::kNever, decltype(&Account::Balance),
                                Account>()),
            MethodAccess::kNone);
}

}  // namespace
}  // namespace hawser::rref
