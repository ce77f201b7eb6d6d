// Which functions a worker may call, with the roles that it claims: there is no
// TLS here.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/time/time.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/rpc.pb.h"
#include "rpc/agent/agent.h"
#include "rpc/agent/current_call.h"
#include "rpc/agent/service_host.h"
#include "rpc/functions/function.h"
#include "rpc/functions/function_registry.h"
#include "rpc/functions/service_method.h"
#include "rpc/identity/worker_info.h"
#include "rpc/membership/membership_log.h"
#include "rpc/stream/register_stream.h"
#include "rpc/stream/stream.h"
#include "rpc/stream/stream_function.h"
#include "rpc/stream/stream_service.h"
#include "rpc/testing/agent_test_fixture.h"
#include "rpc/testing/raw_client.h"
#include "rpc/testing/transport_test_param.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Function<int64_t(std::string)> kLength{"test.Length"};
constexpr Function<int64_t(std::string)> kInline{"test.Inline"};
constexpr Function<int64_t(std::string)> kOpen{"test.Open"};
constexpr StreamFunction<int64_t(std::string)> kCount{"test.Count"};
constexpr ServiceMethod<v1::ListFunctionsRequest, v1::ListFunctionsReply>
    kListFunctions{"hawser.v1.WorkerService.ListFunctions"};

constexpr size_t kLimit = 4096;

class AgentPermissionTest : public testing::TestWithParam<TransportParam> {
 protected:
  AgentPermissionTest() : job_(MakeTransportFactory(GetParam())) {
    FunctionRegistry& registry = job_.registry();
    const auto length = [this](const std::string& text) {
      ++num_runs_;
      return static_cast<int64_t>(text.size());
    };
    const FunctionOptions limited = {.allowed_roles = {"ps", "evaluator"},
                                     .max_request_bytes = kLimit};
    EXPECT_THAT(registry.Register(kLength, length, limited), IsOk());
    FunctionOptions inline_too = limited;
    inline_too.run_on = RunOn::Inline();
    EXPECT_THAT(registry.Register(kInline, length, inline_too), IsOk());
    EXPECT_THAT(registry.Register(kOpen, length), IsOk());
    EXPECT_THAT(
        RegisterStream(
            registry, kCount,
            [this](StreamWriter<int64_t> out, const std::string& text) {
              ++num_runs_;
              return out.Write(static_cast<int64_t>(text.size())).Wait();
            },
            limited),
        IsOk());
  }

  // "w1" is a trainer, "w2" a parameter server, "w0" nothing.
  static void Change(int rank, AgentOptions& options) {
    if (rank == 1) options.roles = {"trainer"};
    if (rank == 2) options.roles = {"other", "ps"};
    options.services.push_back(std::make_unique<StreamService>());
  }

  std::atomic<int> num_runs_{0};
  TestJob job_;
};

INSTANTIATE_TEST_SUITE_P(All, AgentPermissionTest,
                         testing::ValuesIn(kTransportParams),
                         TransportParamName());

TEST_P(AgentPermissionTest, OnlyAllowedRolesCall) {
  job_.StartAll(3, &Change);
  for (const auto& function : {kLength, kInline}) {
    // Over the socket first, and through memory where there is some.
    for (int i = 0; i < 3; ++i) {
      EXPECT_THAT(
          job_.agent(1).Sync("w0", function, "abc"),
          StatusIs(absl::StatusCode::kPermissionDenied,
                   AllOf(HasSubstr("'w1'"), HasSubstr("the role trainer"),
                         HasSubstr(std::string(function.name())),
                         HasSubstr("the roles ps, evaluator"))));
      EXPECT_THAT(job_.agent(0).Async("w1", function, "abc").Wait(),
                  StatusIs(absl::StatusCode::kPermissionDenied,
                           AllOf(HasSubstr("'w0'"), HasSubstr("no role"))));
    }
    EXPECT_EQ(num_runs_.exchange(0), 0);
    for (int i = 0; i < 3; ++i) {
      EXPECT_THAT(job_.agent(2).Sync("w0", function, "abc"), IsOkAndHolds(3));
    }
    EXPECT_EQ(num_runs_.exchange(0), 3);
  }
  EXPECT_THAT(job_.agent(1).Sync("w0", kOpen, "abc"), IsOkAndHolds(3));
}

TEST_P(AgentPermissionTest, OwnFunctionsAreNotRefused) {
  job_.StartAll(2, &Change);
  EXPECT_THAT(job_.agent(1).Sync("w1", kLength, "abc"), IsOkAndHolds(3));
  auto reader = Stream(job_.agent(1), "w1", kCount, "abc");
  ASSERT_THAT(reader, IsOk());
  EXPECT_THAT(reader->Next().Wait(), IsOkAndHolds(std::optional<int64_t>(3)));
}

TEST_P(AgentPermissionTest, LongRequestsAreRefused) {
  job_.StartAll(3, &Change);
  for (const auto& function : {kLength, kInline}) {
    for (int i = 0; i < 3; ++i) {
      EXPECT_THAT(job_.agent(2).Sync("w0", function, std::string(kLimit, 'a')),
                  StatusIs(absl::StatusCode::kResourceExhausted,
                           AllOf(HasSubstr("4096 bytes"),
                                 HasSubstr(std::string(function.name())),
                                 HasSubstr("max_request_bytes"))));
    }
    EXPECT_EQ(num_runs_, 0);
    EXPECT_THAT(
        job_.agent(2).Sync("w0", function, std::string(kLimit / 2, 'a')),
        IsOkAndHolds(kLimit / 2));
    num_runs_ = 0;
  }
  EXPECT_THAT(job_.agent(2).Sync("w0", kOpen, std::string(kLimit, 'a')),
              IsOkAndHolds(kLimit));
}

TEST_P(AgentPermissionTest, StreamsAreLimitedLikeCalls) {
  job_.StartAll(3, &Change);
  const auto first = [&](int rank, size_t size) {
    auto reader =
        Stream(job_.agent(rank), "w0", kCount, std::string(size, 'a'));
    EXPECT_THAT(reader, IsOk());
    return reader->Next().Wait();
  };
  EXPECT_THAT(first(1, 3),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       AllOf(HasSubstr("'w1'"), HasSubstr("test.Count"))));
  EXPECT_THAT(first(2, kLimit), StatusIs(absl::StatusCode::kResourceExhausted,
                                         HasSubstr("4096 bytes")));
  EXPECT_EQ(num_runs_, 0);
  EXPECT_THAT(first(2, 3), IsOkAndHolds(std::optional<int64_t>(3)));
}

// The store knows what a worker claims to be before its peers have asked it.
TEST_P(AgentPermissionTest, RolesOfAWorkerJustComeAreLookedUp) {
  job_.StartOne(0, [](int rank, AgentOptions& options) {
    Change(rank, options);
    // Looks for new members at every heartbeat.
    options.liveness = {.heartbeat_interval = absl::Minutes(10),
                        .silent_limit = absl::Minutes(30)};
  });
  job_.StartOne(1, &Change);
  job_.StartOne(2, &Change);
  EXPECT_THAT(job_.agent(2).Sync("w0", kLength, "abc"), IsOkAndHolds(3));
  EXPECT_THAT(job_.agent(1).Sync("w0", kInline, "abc"),
              StatusIs(absl::StatusCode::kPermissionDenied));
}

// Own functions are not refused for roles. Who knows a worker's incarnation,
// which is no secret, is not that worker, also while it waits for its name.
TEST(AgentPermissionWhileJoiningTest, OwnIncarnationIsNobodyElses) {
  TestJob job;
  ASSERT_THAT(job.registry().Register(
                  kLength, [](const std::string&) { return int64_t{1}; },
                  {.allowed_roles = {"ps"}}),
              IsOk());
  // Whoever wants its name waits as long as it sends no heartbeat reply.
  job.StartOne(0, [](int, AgentOptions& options) {
    options.liveness = {.heartbeat_interval = absl::Minutes(10),
                        .silent_limit = absl::Minutes(30)};
  });
  // Its first, which comes after its start.
  MembershipLog log(&job.store(), job.agent(0).job());
  absl::StatusOr<std::string> lease;
  do {
    lease = log.ReadLease(job.agent(0).info().incarnation);
  } while (!lease.ok() || *lease == "0");
  AgentOptions options = job.Options(0, std::nullopt);
  options.liveness.silent_limit = absl::Minutes(10);
  options.start_timeout = absl::Minutes(10);
  // Its transport is the network's second.
  WorkerInfo joining = {.name = options.name,
                        .id = WorkerId(options.rank),
                        .incarnation = {},
                        .address = "inproc:2"};
  std::future<absl::StatusOr<std::unique_ptr<Agent>>> start =
      std::async(std::launch::async, [options = std::move(options)]() mutable {
        return Agent::Start(std::move(options));
      });

  RawClient caller(job.network().NewTransport());
  WorkerInfo claimed = {
      .name = "other", .id = WorkerId(1), .incarnation = {}, .address = ""};
  v1::CallRequest call;
  call.set_function(std::string(kLength.name()));
  call.set_signature(kLength.Signature());
  absl::Status answer;
  do {
    answer = caller
                 .Call(claimed, joining, RawClient::kCallPath,
                       call.SerializeAsString())
                 .status();
    const std::string text(answer.message());
    // What a worker of another incarnation answers tells its own.
    if (absl::StrContains(text, "reached")) {
      constexpr char kBefore[] = "incarnation ";
      uint64_t incarnation = 0;
      ASSERT_TRUE(absl::SimpleHexAtoi(
          text.substr(text.rfind(kBefore) + sizeof(kBefore) - 1, 16),
          &incarnation))
          << text;
      joining.incarnation = Incarnation{incarnation};
      claimed.incarnation = joining.incarnation;
    }
    // Until it serves; its transport may not yet know any methods.
  } while ((absl::IsFailedPrecondition(answer) || absl::IsUnavailable(answer) ||
            absl::IsUnimplemented(answer)) &&
           start.wait_for(std::chrono::seconds(0)) !=
               std::future_status::ready);
  EXPECT_THAT(answer, StatusIs(absl::StatusCode::kUnauthenticated,
                               HasSubstr("'other'")));

  EXPECT_THAT(job.agent(0).Shutdown(), IsOk());
  EXPECT_THAT(start.get(), IsOk());
}

TEST_P(AgentPermissionTest, ListFunctionsTellsWhatIsWanted) {
  job_.StartAll(2, &Change);
  auto reply = job_.agent(1)
                   .host()
                   .CallMethod("w0", kListFunctions, v1::ListFunctionsRequest())
                   .Wait();
  ASSERT_THAT(reply, IsOk());
  ASSERT_EQ(reply->body.functions_size(), 4);
  const v1::FunctionDescription& count = reply->body.functions(0);
  EXPECT_EQ(count.name(), "test.Count");
  EXPECT_THAT(count.allowed_roles(), ElementsAre("ps", "evaluator"));
  EXPECT_EQ(count.max_request_bytes(), kLimit);
  const v1::FunctionDescription& open = reply->body.functions(3);
  EXPECT_EQ(open.name(), "test.Open");
  EXPECT_EQ(open.allowed_roles_size(), 0);
  EXPECT_EQ(open.max_request_bytes(), 0u);
}

TEST_P(AgentPermissionTest, RolesThatAreNoneAreRefused) {
  AgentOptions options = job_.Options(0, std::nullopt);
  options.roles = {"a role"};
  EXPECT_THAT(
      Agent::Start(std::move(options)),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("AgentOptions::roles"), HasSubstr("a role"))));
  EXPECT_THAT(job_.registry().Register(Function<void()>("test.None"), [] {},
                                       {.allowed_roles = {"ps", ""}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("test.None"), HasSubstr("role"))));
}

TEST_P(AgentPermissionTest, ObserversAreNoMembers) {
  AgentOptions options = job_.Options(0, std::nullopt);
  options.roles = {"observer"};
  EXPECT_THAT(
      Agent::Start(std::move(options)),
      StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("observer")));
}

}  // namespace
}  // namespace hawser::rpc
