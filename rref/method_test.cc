#include "rref/method.h"

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/coroutine.h"
#include "async/future.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/agent/current_call.h"
#include "rpc/testing/transport_test_param.h"
#include "rref/rref.h"
#include "rref/rref_service.h"

namespace hawser::rref {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;

// Cannot be encoded, so it is used only at its owner.
class Counter {
 public:
  static constexpr std::string_view kTypeName = "method_test.Counter";

  explicit Counter(int64_t start) : value_(start) {}
  Counter(Counter&& other) noexcept : value_(other.value_) {}

  int64_t Add(int64_t n) { return value_ += n; }
  absl::StatusOr<std::string> Name(const std::string& prefix) {
    if (prefix.empty()) return absl::OutOfRangeError("no prefix");
    if (prefix == "throw") throw std::out_of_range("no such prefix");
    return prefix + "counter";
  }
  void Reset() { value_ = 0; }
  async::Future<int64_t> Later(const async::Future<void>& gate) {
    return gate.Then([this](absl::Status) { return Add(1000); });
  }
  // Correct only if calls do not overlap.
  void IncrementSlowly() {
    const int64_t old = unguarded_;
    for (int i = 0; i < 1000; ++i) unguarded_ = old;
    unguarded_ = old + 1;
  }
  int64_t unguarded() const { return unguarded_; }

 private:
  int64_t value_;
  volatile int64_t unguarded_ = 0;
};

inline constexpr rpc::Function<Counter(int64_t)> kMake{"method_test.Make"};
inline constexpr rpc::Function<Counter(int64_t)> kMakeLater{
    "method_test.MakeLater"};
inline constexpr rpc::Function<Counter()> kCannotMake{"method_test.CannotMake"};
inline constexpr Method<int64_t(Counter&, int64_t)> kAdd{"Counter.Add"};
inline constexpr Method<std::string(Counter&, std::string)> kName{
    "Counter.Name"};
inline constexpr Method<void(Counter&)> kReset{"Counter.Reset"};
inline constexpr Method<int64_t(Counter&)> kLater{"Counter.Later"};
inline constexpr Method<void(Counter&)> kIncrement{"Counter.Increment"};
inline constexpr Method<int64_t(Counter&)> kUnguarded{"Counter.Unguarded"};
inline constexpr Method<std::string(Counter&)> kWhere{"Counter.Where"};
inline constexpr Method<void(Counter&, int64_t)> kOtherAdd{"Counter.Add"};
inline constexpr Method<int64_t(Counter&)> kNoFuture{"Counter.NoFuture"};
inline constexpr Method<int64_t(Counter&)> kThrowLater{"Counter.ThrowLater"};

class MethodTest : public testing::TestWithParam<rpc::TransportParam> {
 protected:
  void SetUp() override {
    rpc::FunctionRegistry& r = job_.registry();
    ASSERT_THAT(r.Register(kMake, [](int64_t n) { return Counter(n); }),
                IsOk());
    ASSERT_THAT(r.Register(kMakeLater,
                           [this](int64_t n) {
                             return gate_future_.Then(
                                 [n](absl::Status) { return Counter(n); });
                           }),
                IsOk());
    ASSERT_THAT(r.Register(kCannotMake,
                           []() -> absl::StatusOr<Counter> {
                             return absl::DataLossError("no counter");
                           }),
                IsOk());
    ASSERT_THAT(RegisterMethod(r, kAdd, &Counter::Add), IsOk());
    ASSERT_THAT(RegisterMethod(r, kName, &Counter::Name), IsOk());
    ASSERT_THAT(RegisterMethod(r, kReset, &Counter::Reset), IsOk());
    ASSERT_THAT(
        RegisterMethod(r, kLater,
                       [this](Counter& c) { return c.Later(gate_future_); }),
        IsOk());
    ASSERT_THAT(RegisterMethod<HoldAccess::kNever>(
                    r, kIncrement, &Counter::IncrementSlowly,
                    {.run_on = rpc::RunOn::Queue("counter")}),
                IsOk());
    ASSERT_THAT(RegisterMethod<HoldAccess::kNever>(
                    r, kUnguarded, &Counter::unguarded,
                    {.run_on = rpc::RunOn::Queue("counter")}),
                IsOk());
    ASSERT_THAT(
        RegisterMethod(r, kWhere,
                       [](Counter&) {
                         return rpc::CurrentCall::Get()->agent().info().name;
                       }),
        IsOk());
    ASSERT_THAT(
        RegisterMethod(r, kNoFuture,
                       [](Counter&) { return async::Future<int64_t>(); }),
        IsOk());
    ASSERT_THAT(RegisterMethod(r, kThrowLater,
                               [](Counter&) -> async::Future<int64_t> {
                                 co_await async::MakeReadyFuture<int64_t>(1);
                                 throw std::out_of_range("no such counter");
                               }),
                IsOk());
    job_.StartAll(3, [](int, rpc::AgentOptions& options) {
      options.services.push_back(std::make_unique<RRefService>());
    });
  }

  void TearDown() override {
    for (const absl::Status& status : job_.ShutdownAll()) {
      EXPECT_THAT(status, IsOk());
    }
  }

  rpc::Agent& agent(int rank) { return job_.agent(rank); }

  async::Promise<void> gate_;
  const async::Future<void> gate_future_ = gate_.future();
  rpc::TestJob job_{rpc::MakeTransportFactory(GetParam())};
};

INSTANTIATE_TEST_SUITE_P(All, MethodTest,
                         testing::ValuesIn(rpc::kTransportParams),
                         rpc::TransportParamName());

TEST_P(MethodTest, RunsAtTheOwnerOnTheObject) {
  const auto counter = Remote(agent(0), "w1", kMake, 5);
  ASSERT_THAT(counter, IsOk());
  EXPECT_THAT(Sync(agent(0), *counter, kAdd, 2), IsOkAndHolds(7));
  EXPECT_THAT(Async(agent(0), *counter, kAdd, 3).Wait(), IsOkAndHolds(10));
  EXPECT_THAT(Sync(agent(0), *counter, kName, "a "), IsOkAndHolds("a counter"));
  EXPECT_THAT(Sync(agent(0), *counter, kReset), IsOk());
  EXPECT_THAT(Sync(agent(0), *counter, kAdd, 1), IsOkAndHolds(1));
  EXPECT_THAT(Sync(agent(0), *counter, kWhere), IsOkAndHolds("w1"));
}

TEST_P(MethodTest, ResultCanStayAtTheOwner) {
  const auto counter = Remote(agent(0), "w1", kMake, 5);
  ASSERT_THAT(counter, IsOk());
  const auto sum = Remote(agent(0), *counter, kAdd, 4);
  ASSERT_THAT(sum, IsOk());
  EXPECT_EQ(sum->owner().name, "w1");
  EXPECT_THAT(sum->ToHere(), IsOkAndHolds(9));
}

TEST_P(MethodTest, OwnerCallsItsOwnObjects) {
  const auto local = MakeLocal(agent(0), Counter(1));
  ASSERT_THAT(local, IsOk());
  EXPECT_THAT(Sync(agent(0), *local, kAdd, 1), IsOkAndHolds(2));
  const auto made = Remote(agent(0), "w0", kMake, 3);
  ASSERT_THAT(made, IsOk());
  EXPECT_THAT(Sync(agent(0), *made, kAdd, 1), IsOkAndHolds(4));
}

TEST_P(MethodTest, WaitsForAnObjectThatIsNotCreatedYet) {
  const auto counter = Remote(agent(0), "w1", kMakeLater, 5);
  ASSERT_THAT(counter, IsOk());
  const auto sum = Async(agent(0), *counter, kAdd, 1);
  EXPECT_FALSE(sum.ready());
  gate_.Set(absl::OkStatus());
  EXPECT_THAT(sum.Wait(), IsOkAndHolds(6));
}

TEST_P(MethodTest, ReturnedFutureKeepsTheObject) {
  auto counter = Remote(agent(0), "w1", kMake, 5);
  ASSERT_THAT(counter, IsOk());
  const auto later = Async(agent(0), *counter, kLater);
  *counter = RRef<Counter>();
  gate_.Set(absl::OkStatus());
  EXPECT_THAT(later.Wait(), IsOkAndHolds(1005));
}

TEST_P(MethodTest, QueueRunsMethodsOneByOne) {
  const auto counter = Remote(agent(0), "w1", kMake, 0);
  ASSERT_THAT(counter, IsOk());
  std::vector<async::Future<void>> calls;
  for (int i = 0; i < 100; ++i) {
    calls.push_back(Async(agent(0), *counter, kIncrement));
  }
  for (const auto& call : calls) EXPECT_THAT(call.Wait(), IsOk());
  EXPECT_THAT(Sync(agent(0), *counter, kUnguarded), IsOkAndHolds(100));
}

TEST_P(MethodTest, ReturnsErrorsOfTheMethodTheObjectAndTheCall) {
  const auto counter = Remote(agent(0), "w1", kMake, 5);
  ASSERT_THAT(counter, IsOk());
  EXPECT_THAT(Sync(agent(0), *counter, kName, ""),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("no prefix")));
  EXPECT_THAT(Sync(agent(0), *counter, kOtherAdd, 1),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("int64(method_test.Counter&, int64)")));
  const auto absent = Remote(agent(0), "w1", kCannotMake);
  ASSERT_THAT(absent, IsOk());
  EXPECT_THAT(Sync(agent(0), *absent, kAdd, 1),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("no counter")));
  // The type of the reference differs from that of the object.
  const auto number = MakeLocal<int64_t>(agent(0), 5);
  ASSERT_THAT(number, IsOk());
  EXPECT_THAT(Sync(agent(0), RRef<Counter>(number->reference()), kAdd, 1),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_P(MethodTest, ExceptionOrInvalidFutureIsInternal) {
  const auto counter = Remote(agent(0), "w1", kMake, 5);
  ASSERT_THAT(counter, IsOk());
  EXPECT_THAT(
      Sync(agent(0), *counter, kName, "throw"),
      StatusIs(absl::StatusCode::kInternal, HasSubstr("no such prefix")));
  EXPECT_THAT(
      Sync(agent(0), *counter, kThrowLater),
      StatusIs(absl::StatusCode::kInternal, HasSubstr("no such counter")));
  EXPECT_THAT(Sync(agent(0), *counter, kNoFuture),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("not valid")));
  EXPECT_THAT(Sync(agent(0), *counter, kAdd, 1), IsOkAndHolds(6));
}

TEST_P(MethodTest, FailedCreationFailsTheCall) {
  constexpr rpc::Function<Counter()> kAbsent{"method_test.Absent"};
  const auto counter = Remote(agent(0), "w1", kAbsent);
  ASSERT_THAT(counter, IsOk());
  EXPECT_THAT(Sync(agent(0), *counter, kAdd, 1),
              StatusIs(absl::StatusCode::kUnimplemented));
}

}  // namespace
}  // namespace hawser::rref
