// Every kind of error that a call can end with: code, worker at fault, its
// incarnation and whether the call may have run, the same however the call is
// made.

#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "async/blocking_region.h"
#include "async/future.h"
#include "async/status_macros.h"
#include "async/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/agent.h"
#include "rpc/agent_test_fixture.h"
#include "rpc/cancellation.h"
#include "rpc/current_call.h"
#include "rpc/error_detail.h"
#include "rpc/function.h"
#include "rpc/member_event.h"
#include "rpc/transport_test_param.h"
#include "rpc/wire_traits.h"
#include "rref/rref.h"
#include "rref/rref_service.h"

namespace hawser::tests {

// An argument or result whose encoding and decoding can fail.
struct Fragile {
  enum Kind : int64_t { kSound, kNoEncoding, kNoDecoding };
  int64_t kind = kSound;
};

}  // namespace hawser::tests

template <>
struct hawser::rpc::WireTraits<hawser::tests::Fragile> {
  using Fragile = hawser::tests::Fragile;
  static std::string TypeName() { return "tests.Fragile"; }
  static absl::Status Encode(Encoder& encoder, const Fragile& value) {
    if (value.kind == Fragile::kNoEncoding) {
      return absl::InvalidArgumentError("this cannot be written");
    }
    encoder.WriteInt(value.kind);
    return absl::OkStatus();
  }
  static absl::StatusOr<Fragile> Decode(Decoder& decoder) {
    ASSIGN_OR_RETURN(const int64_t kind, decoder.ReadInt());
    if (kind == Fragile::kNoDecoding) {
      return absl::InvalidArgumentError("this cannot be read");
    }
    return Fragile{kind};
  }
};

namespace hawser::tests {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::hawser::rpc::CallOptions;
using ::hawser::rpc::Destination;
using ::hawser::rpc::ErrorDetail;
using ::hawser::rpc::Function;
using ::hawser::rpc::Incarnation;
using ::hawser::rpc::WorkerInfo;
using ::testing::HasSubstr;

constexpr Function<int64_t()> kOne{"table.One"};
constexpr Function<int64_t(int64_t)> kFail{"table.Fail"};
constexpr Function<int64_t()> kHold{"table.Hold"};
constexpr Function<int64_t()> kThrow{"table.Throw"};
constexpr Function<int64_t()> kNoFuture{"table.NoFuture"};
constexpr Function<int64_t(Fragile)> kTake{"table.Take"};
constexpr Function<Fragile(int64_t)> kGive{"table.Give"};
constexpr Function<void()> kRelay{"table.Relay"};
constexpr Function<void()> kOutlive{"table.Outlive"};

// How w0 calls w2.
enum class Route {
  kSync,
  kAsync,
  // Makes a reference and fetches its value.
  kRemote,
  // Has w1 call w2.
  kTwoHops,
};

class ErrorTableTest
    : public testing::TestWithParam<std::tuple<rpc::TransportParam, Route>> {
 protected:
  ErrorTableTest() : job_(rpc::MakeTransportFactory(std::get<0>(GetParam()))) {}

  void SetUp() override {
    rpc::FunctionRegistry& registry = job_.registry();
    ASSERT_THAT(registry.Register(kOne, [] { return 1; }), IsOk());
    ASSERT_THAT(registry.Register(kFail,
                                  [](int64_t code) -> absl::StatusOr<int64_t> {
                                    return absl::Status(
                                        static_cast<absl::StatusCode>(code),
                                        "as wished");
                                  }),
                IsOk());
    ASSERT_THAT(registry.Register(kHold,
                                  [this] {
                                    async::Future<int64_t> held =
                                        held_.future();
                                    entered_.Notify();
                                    return held;
                                  }),
                IsOk());
    ASSERT_THAT(registry.Register(kThrow,
                                  []() -> int64_t {
                                    throw std::out_of_range("no such row");
                                  }),
                IsOk());
    ASSERT_THAT(
        registry.Register(kNoFuture, [] { return async::Future<int64_t>(); }),
        IsOk());
    ASSERT_THAT(
        registry.Register(kTake, [](const Fragile&) { return int64_t{1}; }),
        IsOk());
    ASSERT_THAT(
        registry.Register(kGive, [](int64_t kind) { return Fragile{kind}; }),
        IsOk());
    ASSERT_THAT(
        registry.Register(
            kRelay,
            [this] { return relay_(rpc::CurrentCall::Get()->agent()); }),
        IsOk());
    job_.StartAll(3, [](int, rpc::AgentOptions& options) {
      options.services.push_back(std::make_unique<rref::RRefService>());
      options.liveness.heartbeat_interval = absl::Milliseconds(100);
    });
    target_ = job_.agent(2).info();
  }

  Route route() const { return std::get<1>(GetParam()); }

  // Makes a call by the route and returns its error.
  template <class R, class... A>
  absl::Status Call(const Destination& to, const CallOptions& options,
                    const Function<R(A...)>& function,
                    const std::type_identity_t<A>&... arguments) {
    rpc::Agent& agent = job_.agent(0);
    switch (route()) {
      case Route::kSync:
        return agent.Sync(to, options, function, arguments...).status();
      case Route::kAsync:
        return agent.Async(to, options, function, arguments...).Wait().status();
      case Route::kRemote: {
        auto reference =
            rref::Remote(agent, to, options, function, arguments...);
        if (!reference.ok()) return reference.status();
        return reference->ToHere(absl::Seconds(20)).status();
      }
      case Route::kTwoHops:
        relay_ = [&](rpc::Agent& relay) {
          return relay.Sync(to, options, function, arguments...).status();
        };
        return agent.Sync("w1", kRelay);
    }
    return absl::OkStatus();
  }
  template <class R, class... A>
  absl::Status Call(const Function<R(A...)>& function,
                    const std::type_identity_t<A>&... arguments) {
    return Call("w2", CallOptions(), function, arguments...);
  }

  void ExpectAt(const WorkerInfo& worker, bool maybe_applied,
                const absl::Status& status) {
    const std::optional<ErrorDetail> found = rpc::GetErrorDetail(status);
    ASSERT_TRUE(found.has_value()) << status;
    EXPECT_EQ(found->worker, worker.name) << status;
    EXPECT_EQ(found->incarnation, worker.incarnation) << status;
    EXPECT_EQ(found->maybe_applied, maybe_applied) << status;
  }

  // Ends w2 without a word, and waits until the workers before it know.
  void AwaitLossOfTarget() {
    absl::Notification known[2];
    std::vector<rpc::MemberWatch> watches;
    for (int i = 0; i < 2; ++i) {
      watches.push_back(job_.agent(i).WatchMembers(
          [&known, i](const rpc::MemberEvent& event) {
            if (event.kind == rpc::MemberEvent::Kind::kLost) known[i].Notify();
          }));
    }
    ASSERT_THAT(job_.agent(2).Shutdown(/*graceful=*/false), IsOk());
    for (int i = 0; i < 2; ++i) {
      known[i].WaitForNotification();
      job_.agent(i).UnwatchMembers(watches[i]);
    }
  }

  async::Promise<int64_t> held_;
  absl::Notification entered_;
  std::function<absl::Status(rpc::Agent&)> relay_;
  WorkerInfo target_;
  // Ends first: its threads use what stands above.
  rpc::TestJob job_;
};

TEST_P(ErrorTableTest, UnknownWorker) {
  const absl::Status status = Call("nobody", CallOptions(), kOne);
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("'nobody'")));
  ExpectAt({"nobody", rpc::WorkerId(), Incarnation{}, ""},
           /*maybe_applied=*/false, status);
}

TEST_P(ErrorTableTest, OtherIncarnation) {
  WorkerInfo old = target_;
  old.incarnation = Incarnation{rpc::ToNumber(old.incarnation) ^ 1};
  const absl::Status status = Call(old, CallOptions(), kOne);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition,
                               HasSubstr(rpc::ToString(target_.incarnation))));
  ExpectAt(old, /*maybe_applied=*/false, status);
}

TEST_P(ErrorTableTest, UnknownFunction) {
  constexpr Function<int64_t()> kNone{"table.None"};
  const absl::Status status = Call(kNone);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnimplemented,
                               HasSubstr("'table.None'")));
  ExpectAt(target_, /*maybe_applied=*/false, status);
}

TEST_P(ErrorTableTest, OtherSignature) {
  constexpr Function<int64_t(double)> kOther{"table.One"};
  const absl::Status status = Call(kOther, 1.0);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                               HasSubstr("int64(double)")));
  ExpectAt(target_, /*maybe_applied=*/false, status);
}

TEST_P(ErrorTableTest, ArgumentThatDoesNotEncode) {
  const absl::Status status = Call(kTake, Fragile{Fragile::kNoEncoding});
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                               HasSubstr("this cannot be written")));
  ExpectAt(target_, /*maybe_applied=*/false, status);
}

TEST_P(ErrorTableTest, ArgumentThatDoesNotDecode) {
  const absl::Status status = Call(kTake, Fragile{Fragile::kNoDecoding});
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                               HasSubstr("this cannot be read")));
  ExpectAt(target_, /*maybe_applied=*/false, status);
}

TEST_P(ErrorTableTest, NegativeTimeout) {
  const absl::Status status =
      Call(target_, {.timeout = absl::Seconds(-1)}, kOne);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                               HasSubstr("negative")));
  ExpectAt(target_, /*maybe_applied=*/false, status);
}

TEST_P(ErrorTableTest, Timeout) {
  const absl::Time start = absl::Now();
  const absl::Status status =
      Call("w2", {.timeout = absl::Milliseconds(300)}, kHold);
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("'w2'")));
  ExpectAt(target_, /*maybe_applied=*/true, status);
  EXPECT_LT(absl::Now() - start, absl::Seconds(10));
}

TEST_P(ErrorTableTest, ErrorOfTheFunction) {
  const absl::Time start = absl::Now();
  for (int64_t code = 1; code <= 16; ++code) {
    const absl::Status status = Call(kFail, code);
    EXPECT_THAT(status, StatusIs(static_cast<absl::StatusCode>(code),
                                 HasSubstr("as wished")));
    ExpectAt(target_, /*maybe_applied=*/false, status);
  }
  // None of them was tried again.
  EXPECT_LT(absl::Now() - start, absl::Seconds(15));
}

TEST_P(ErrorTableTest, FunctionThatThrows) {
  const absl::Status status = Call(kThrow);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInternal,
                               testing::AllOf(HasSubstr("'table.Throw'"),
                                              HasSubstr("no such row"))));
  ExpectAt(target_, /*maybe_applied=*/false, status);
}

TEST_P(ErrorTableTest, FunctionThatReturnsNoFuture) {
  const absl::Status status = Call(kNoFuture);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInternal,
                               HasSubstr("'table.NoFuture'")));
  ExpectAt(target_, /*maybe_applied=*/false, status);
}

TEST_P(ErrorTableTest, ReplyThatDoesNotDecode) {
  const absl::Status status = Call(kGive, Fragile::kNoDecoding);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInternal,
                               HasSubstr("this cannot be read")));
  ExpectAt(target_, /*maybe_applied=*/true, status);
}

TEST_P(ErrorTableTest, ResultThatDoesNotEncode) {
  const absl::Status status = Call(kGive, Fragile::kNoEncoding);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                               HasSubstr("this cannot be written")));
  ExpectAt(target_, /*maybe_applied=*/false, status);
}

TEST_P(ErrorTableTest, PeerThatStopsDuringTheCall) {
  std::future<absl::Status> stopped = std::async(std::launch::async, [&] {
    entered_.WaitForNotification();
    return job_.agent(2).Shutdown(/*graceful=*/false);
  });
  const absl::Status status = Call("w2", {.timeout = absl::Seconds(60)}, kHold);
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("'w2'")));
  ExpectAt(target_, /*maybe_applied=*/true, status);
  EXPECT_THAT(stopped.get(), IsOk());
}

TEST_P(ErrorTableTest, PeerThatIsKnownToBeLost) {
  AwaitLossOfTarget();
  const absl::Time start = absl::Now();
  const absl::Status status = Call(kOne);
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("'w2'")));
  ExpectAt(target_, /*maybe_applied=*/false, status);
  EXPECT_LT(absl::Now() - start, absl::Seconds(10));
}

std::string RouteName(Route route) {
  const char* names[] = {"Sync", "Async", "Remote", "TwoHops"};
  return names[static_cast<int>(route)];
}

const auto kParamName = [](const auto& info) {
  return absl::StrCat(rpc::ToString(std::get<0>(info.param)),
                      RouteName(std::get<1>(info.param)));
};

INSTANTIATE_TEST_SUITE_P(
    Routes, ErrorTableTest,
    testing::Combine(testing::ValuesIn(rpc::kTransportParams),
                     testing::Values(Route::kSync, Route::kAsync,
                                     Route::kRemote, Route::kTwoHops)),
    kParamName);

// Errors of the calling agent itself, which no relay can have for it.
class OwnErrorTableTest : public ErrorTableTest {};

TEST_P(OwnErrorTableTest, AgentThatWasShutDown) {
  const WorkerInfo self = job_.agent(0).info();
  ASSERT_THAT(job_.agent(0).Shutdown(/*graceful=*/false), IsOk());
  const absl::Status status = Call(kOne);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition,
                               HasSubstr("shut down")));
  ExpectAt(self, /*maybe_applied=*/false, status);
}

TEST_P(OwnErrorTableTest, AgentThatIsStopping) {
  const WorkerInfo self = job_.agent(0).info();
  absl::Notification begun;
  std::promise<absl::Status> status;
  // Runs on w0 until it is cut off, and then calls.
  ASSERT_THAT(job_.registry().Register(
                  kOutlive,
                  [&] {
                    absl::Notification cut_off;
                    rpc::Cancellation::Registration registration =
                        rpc::CurrentCall::Get()->cancellation().OnCancel(
                            [&] { cut_off.Notify(); });
                    begun.Notify();
                    async::BlockingRegion region;
                    cut_off.WaitForNotification();
                    status.set_value(Call(kOne));
                  }),
              IsOk());
  async::Future<void> outlive = job_.agent(1).Async("w0", kOutlive);
  begun.WaitForNotification();
  ASSERT_THAT(job_.agent(0).Shutdown(/*graceful=*/false), IsOk());
  const absl::Status found = status.get_future().get();
  EXPECT_THAT(found, StatusIs(absl::StatusCode::kUnavailable,
                              HasSubstr("is stopping")));
  ExpectAt(self, /*maybe_applied=*/false, found);
  EXPECT_THAT(outlive.Wait(), StatusIs(absl::StatusCode::kUnavailable));
}

INSTANTIATE_TEST_SUITE_P(
    Routes, OwnErrorTableTest,
    testing::Combine(testing::ValuesIn(rpc::kTransportParams),
                     testing::Values(Route::kSync, Route::kAsync,
                                     Route::kRemote)),
    kParamName);

}  // namespace
}  // namespace hawser::tests
