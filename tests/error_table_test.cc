// Tests of every kind of error of calls: its code, the worker at fault, the
// worker's incarnation, and if the call may have run. They do not depend on the
// route of the call.

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/agent/agent.h"
#include "rpc/errors/error_detail.h"
#include "rpc/functions/function.h"
#include "rpc/identity/worker_info.h"
#include "rpc/membership/worker_directory.h"
#include "rpc/testing/raw_client.h"
#include "rpc/testing/transport_test_param.h"
#include "rpc/transport/payload.h"
#include "tests/error_table_test_fixture.h"

namespace hawser::tests {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::hawser::rpc::CallOptions;
using ::hawser::rpc::Function;
using ::hawser::rpc::Incarnation;
using ::hawser::rpc::WorkerInfo;
using ::testing::HasSubstr;

TEST_P(ErrorTableTest, UnknownWorker) {
  const absl::Status status = Call("nobody", CallOptions(), kOne);
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("'nobody'")));
  ExpectAt({"nobody", rpc::WorkerId(), Incarnation{}, ""},
           /*maybe_applied=*/false, status);
}

TEST_P(ErrorTableTest, UnusedAddress) {
  // A worker that has died but is still registered. No other process uses port
  // 1.
  const WorkerInfo ghost = {
      .name = "ghost",
      .id = rpc::WorkerId(9),
      .incarnation = Incarnation{77},
      .address = std::get<rpc::TransportParam>(GetParam()) ==
                         rpc::TransportParam::kInproc
                     ? "inproc:99"
                     : "127.0.0.1:1",
  };
  rpc::WorkerDirectory directory(&job_.store(), job_.agent(0).job());
  ASSERT_THAT(directory.Register(ghost, {}), IsOk());
  const absl::Status status = Call("ghost", CallOptions(), kOne);
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("'ghost'")));
  ExpectAt(ghost, /*maybe_applied=*/false, status);
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

TEST_P(ErrorTableTest, FunctionForOtherRoles) {
  const absl::Status status = Call(kGuarded);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kPermissionDenied,
                               testing::AllOf(HasSubstr("'table.Guarded'"),
                                              HasSubstr("trainer"))));
  ExpectAt(target_, /*maybe_applied=*/false, status);
}

TEST_P(ErrorTableTest, RequestThatIsTooLongForTheFunction) {
  const absl::Status status = Call(kShort, std::string(kShortBytes, 'x'));
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted,
                               testing::AllOf(HasSubstr("'table.Short'"),
                                              HasSubstr("max_request_bytes"))));
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
  bool sent = false;
  for (absl::Duration timeout = absl::Milliseconds(300); !sent; timeout *= 2) {
    const absl::Time start = absl::Now();
    const absl::Status status = Call("w2", {.timeout = timeout}, kHold);
    EXPECT_LT(absl::Now() - start, timeout + absl::Seconds(10));
    ASSERT_THAT(status, StatusIs(absl::StatusCode::kDeadlineExceeded,
                                 HasSubstr("'w2'")));
    // The timeout may also pass before the call is sent, so that it cannot have
    // run.
    sent = !absl::StrContains(status.message(), "before it was sent");
    ExpectAt(target_, /*maybe_applied=*/sent, status);
  }
}

TEST_P(ErrorTableTest, ErrorOfTheFunction) {
  const absl::Time start = absl::Now();
  for (int64_t code = 1; code <= 16; ++code) {
    const absl::Status status = Call(kFail, code);
    EXPECT_THAT(status, StatusIs(static_cast<absl::StatusCode>(code),
                                 HasSubstr("as requested")));
    ExpectAt(target_, /*maybe_applied=*/false, status);
  }
  // None of the calls was retried.
  EXPECT_LT(absl::Now() - start, absl::Seconds(15));
}

TEST_P(ErrorTableTest, FunctionThatThrows) {
  const absl::Status status = Call(kThrow);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInternal,
                               testing::AllOf(HasSubstr("'table.Throw'"),
                                              HasSubstr("no such row"))));
  ExpectAt(target_, /*maybe_applied=*/false, status);
}

TEST_P(ErrorTableTest, FunctionThatThrowsLater) {
  const absl::Status status = Call(kThrowLater);
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kInternal, HasSubstr("no such row")));
  ExpectAt(target_, /*maybe_applied=*/false, status);
}

// Traits of arguments and results, at the caller and at the callee.
TEST_P(ErrorTableTest, TraitsThatThrow) {
  const absl::Status caller_writes =
      Call(kTake, Fragile{Fragile::kThrowsEncoding});
  const absl::Status callee_reads =
      Call(kTake, Fragile{Fragile::kThrowsDecoding});
  const absl::Status callee_writes = Call(kGive, Fragile::kThrowsEncoding);
  for (const absl::Status& status :
       {caller_writes, callee_reads, callee_writes}) {
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInternal,
                                 HasSubstr("threw no such field")));
    ExpectAt(target_, /*maybe_applied=*/false, status);
  }
  const absl::Status caller_reads = Call(kGive, Fragile::kThrowsDecoding);
  EXPECT_THAT(caller_reads, StatusIs(absl::StatusCode::kInternal,
                                     HasSubstr("threw no such field")));
  ExpectAt(target_, /*maybe_applied=*/true, caller_reads);
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

// Requests that workers never send.
TEST_P(ErrorTableTest, MalformedRequest) {
  if (std::get<Route>(GetParam()) != Route::kSync) {
    GTEST_SKIP() << "the request is built by the test, without a route";
  }
  const auto make_transport =
      rpc::MakeTransportFactory(std::get<rpc::TransportParam>(GetParam()));
  rpc::RawClient caller(make_transport != nullptr
                            ? make_transport()
                            : job_.network().NewTransport());
  const WorkerInfo non_member = {.name = "non_member",
                                 .id = rpc::WorkerId(),
                                 .incarnation = Incarnation{1},
                                 .address = ""};
  // In each, a field declares a length beyond the end: in the message, in its
  // header, and in its body.
  const std::string in_header("\x6a\x02\x0a\x7f", 4);
  const std::string in_body("\x0a\x02\x0a\x7f", 4);
  const auto send = [&](std::string bytes) {
    return caller
        .Send({.address = target_.address}, rpc::RawClient::kCallPath,
              rpc::Payload(std::move(bytes)))
        .status();
  };
  for (const absl::Status& status :
       {send(std::string("\x0a\x7f", 2)), send(in_header),
        caller
            .Call(non_member, target_, "/hawser.v1.RRefService/Fetch", in_body)
            .status()}) {
    EXPECT_THAT(status,
                StatusIs(absl::StatusCode::kInternal, HasSubstr("'w2'")));
    ExpectAt(target_, /*maybe_applied=*/false, status);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Routes, ErrorTableTest,
    testing::Combine(testing::ValuesIn(rpc::kTransportParams),
                     testing::Values(Route::kSync, Route::kAsync,
                                     Route::kRemote, Route::kTwoHops)),
    kParamName);

}  // namespace
}  // namespace hawser::tests
