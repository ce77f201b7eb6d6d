// Exceptions of user code end in an error or on stderr, never the process.

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "absl/utility/utility.h"
#include "async/coroutine.h"
#include "async/future.h"
#include "async/status_macros.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/stream.pb.h"
#include "rpc/agent/agent.h"
#include "rpc/agent/service.h"
#include "rpc/agent/service_host.h"
#include "rpc/membership/member_event.h"
#include "rpc/stream/register_stream.h"
#include "rpc/stream/stream.h"
#include "rpc/stream/stream_function.h"
#include "rpc/stream/stream_methods.h"
#include "rpc/stream/stream_service.h"
#include "rpc/testing/agent_test_fixture.h"
#include "rpc/testing/transport_test_param.h"
#include "rpc/wire/wire_traits.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;

// An argument or value that throws where it is told to.
struct Explosive {
  enum Where : int64_t { kNowhere, kInEncode, kInDecode, kInMove };
  Explosive() = default;
  explicit Explosive(int64_t place) : where(place) {}
  Explosive(const Explosive&) = default;
  Explosive& operator=(const Explosive&) = default;
  Explosive(Explosive&& other) : where(other.where) {
    if (where == kInMove) throw std::out_of_range("boom in move");
  }
  Explosive& operator=(Explosive&&) = default;

  int64_t where = kNowhere;
};

}  // namespace

template <>
struct WireTraits<Explosive> {
  static std::string TypeName() { return "exceptions.Explosive"; }
  static absl::Status Encode(Encoder& encoder, const Explosive& value) {
    if (value.where == Explosive::kInEncode) {
      throw std::out_of_range("boom in encode");
    }
    encoder.WriteInt(value.where);
    return absl::OkStatus();
  }
  static absl::StatusOr<Explosive> Decode(Decoder& decoder) {
    ASSIGN_OR_RETURN(const int64_t where, decoder.ReadInt());
    if (where == Explosive::kInDecode) {
      throw std::out_of_range("boom in decode");
    }
    return absl::StatusOr<Explosive>(absl::in_place, where);
  }
};

namespace {

constexpr Function<int64_t()> kOne{"exceptions.One"};
constexpr Function<int64_t()> kCoroutine{"exceptions.Coroutine"};
constexpr Function<int64_t()> kThen{"exceptions.Then"};
constexpr Function<int64_t()> kInline{"exceptions.Inline"};
constexpr Function<int64_t()> kQueued{"exceptions.Queued"};
constexpr Function<int64_t(Explosive)> kTake{"exceptions.Take"};
constexpr Function<Explosive(int64_t)> kGive{"exceptions.Give"};
constexpr Function<void()> kWaitToThrow{"exceptions.WaitToThrow"};
constexpr StreamFunction<Explosive(int64_t)> kStream{"exceptions.Stream"};
constexpr StreamFunction<int64_t()> kStreamLater{"exceptions.StreamLater"};

// One whose methods and news of losses throw.
class ThrowingService final : public Service {
 public:
  std::string_view name() const override { return "throwing"; }
  absl::Status Start(ServiceHost& host) override {
    RETURN_IF_ERROR((host.RegisterMethod(
        kStreamCloseMethod,
        [](const MethodCall&, const Message<v1::StreamCloseRequest>&)
            -> async::Future<Message<v1::StreamCloseReply>> {
          throw std::out_of_range("boom in method");
        })));
    return host.RegisterMethod(
        kStreamNextMethod,
        [](const MethodCall&, const Message<v1::StreamNextRequest>&) {
          return async::Future<Message<v1::StreamNextReply>>();
        });
  }
  void OnWorkerLost(const WorkerInfo&, const absl::Status&) override {
    throw std::out_of_range("boom in loss");
  }
};

// Hears of losses behind the one above.
class HearingService final : public Service {
 public:
  explicit HearingService(absl::Notification* heard) : heard_(heard) {}
  std::string_view name() const override { return "hearing"; }
  absl::Status Start(ServiceHost&) override { return absl::OkStatus(); }
  void OnWorkerLost(const WorkerInfo&, const absl::Status&) override {
    heard_->Notify();
  }

 private:
  absl::Notification* const heard_;
};

class AgentExceptionsTest : public testing::TestWithParam<TransportParam> {
 protected:
  AgentExceptionsTest() : job_(MakeTransportFactory(GetParam())) {}

  void SetUp() override {
    FunctionRegistry& registry = job_.registry();
    ASSERT_THAT(registry.Register(kOne, [] { return 1; }), IsOk());
    ASSERT_THAT(registry.Register(
                    kTake, [](const Explosive& taken) { return taken.where; }),
                IsOk());
    ASSERT_THAT(registry.Register(
                    kGive,
                    [](int64_t where) -> absl::StatusOr<Explosive> {
                      return absl::StatusOr<Explosive>(absl::in_place, where);
                    }),
                IsOk());
  }

  void StartAll() {
    job_.StartAll(2, [](int, AgentOptions& options) {
      options.services.push_back(
          std::make_unique<StreamService>(StreamLimits()));
    });
  }

  // That the worker goes on, and the error says what.
  void ExpectException(const absl::Status& status, const char* what) {
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInternal, HasSubstr(what)));
    EXPECT_THAT(job_.agent(0).Sync("w1", kOne), IsOkAndHolds(1));
  }
  template <class R, class... A>
  void ExpectThrows(const char* what, const Function<R(A...)>& function,
                    const std::type_identity_t<A>&... arguments) {
    ExpectException(job_.agent(0).Sync("w1", function, arguments...).status(),
                    what);
  }

  absl::Notification entered_;
  absl::Notification heard_;
  std::shared_ptr<Cancellation::Registration> registration_;
  // Ends first: its threads use what stands above.
  TestJob job_;
};

TEST_P(AgentExceptionsTest, FunctionsThatAreDoneLater) {
  const auto after_a_call = []() -> async::Future<int64_t> {
    Agent& agent = CurrentCall::Get()->agent();
    CO_ASSIGN_OR_RETURN(const int64_t one, co_await agent.Async("w0", kOne));
    if (one == 1) throw std::out_of_range("boom in coroutine");
    co_return one;
  };
  const auto in_then = [] {
    Agent& agent = CurrentCall::Get()->agent();
    return agent.Async("w0", kOne).Then([](absl::StatusOr<int64_t>) -> int64_t {
      throw std::out_of_range("boom in then");
    });
  };
  ASSERT_THAT(job_.registry().Register(kCoroutine, after_a_call), IsOk());
  ASSERT_THAT(job_.registry().Register(kThen, in_then), IsOk());
  StartAll();
  ExpectThrows("boom in coroutine", kCoroutine);
  ExpectThrows("boom in then", kThen);
}

TEST_P(AgentExceptionsTest, FunctionsThatRunInlineOrOnAQueue) {
  const auto fail = []() -> int64_t { throw std::out_of_range("boom"); };
  ASSERT_THAT(
      job_.registry().Register(kInline, fail, {.run_on = RunOn::Inline()}),
      IsOk());
  ASSERT_THAT(
      job_.registry().Register(kQueued, fail, {.run_on = RunOn::Queue("q")}),
      IsOk());
  StartAll();
  ExpectThrows("function 'exceptions.Inline' threw boom", kInline);
  ExpectThrows("function 'exceptions.Queued' threw boom", kQueued);
}

TEST_P(AgentExceptionsTest, TraitsOfArgumentsAndResults) {
  StartAll();
  ExpectThrows("boom in encode", kTake, Explosive(Explosive::kInEncode));
  ExpectThrows("boom in decode", kTake, Explosive(Explosive::kInDecode));
  ExpectThrows("boom in encode", kGive, Explosive::kInEncode);
  ExpectThrows("boom in decode", kGive, Explosive::kInDecode);
  ExpectThrows("boom in move", kGive, Explosive::kInMove);
}

TEST_P(AgentExceptionsTest, Streams) {
  ASSERT_THAT(
      RegisterStream(
          job_.registry(), kStream,
          [](StreamWriter<Explosive> out, int64_t where) -> absl::Status {
            RETURN_IF_ERROR(out.Write(Explosive(where)).Wait());
            throw std::out_of_range("boom in producer");
          }),
      IsOk());
  ASSERT_THAT(
      RegisterStream(job_.registry(), kStreamLater,
                     [](StreamWriter<int64_t> out) -> async::Future<void> {
                       CO_RETURN_IF_ERROR(co_await out.Write(1));
                       throw std::out_of_range("boom in coroutine");
                     }),
      IsOk());
  StartAll();
  Agent& agent = job_.agent(0);
  auto stream = Stream(agent, "w1", kStream, Explosive::kNowhere);
  ASSERT_THAT(stream, IsOk());
  EXPECT_THAT(stream->Next().Wait(), IsOk());
  ExpectException(stream->Next().Wait().status(), "boom in producer");
  stream = Stream(agent, "w1", kStream, Explosive::kInEncode);
  ASSERT_THAT(stream, IsOk());
  ExpectException(stream->Next().Wait().status(), "boom in encode");
  stream = Stream(agent, "w1", kStream, Explosive::kInDecode);
  ASSERT_THAT(stream, IsOk());
  ExpectException(stream->Next().Wait().status(), "boom in decode");
  auto later = Stream(agent, "w1", kStreamLater);
  ASSERT_THAT(later, IsOk());
  EXPECT_THAT(later->Next().Wait(), IsOk());
  ExpectException(later->Next().Wait().status(), "boom in coroutine");
}

TEST_P(AgentExceptionsTest, CallbackOfACancellation) {
  ASSERT_THAT(job_.registry().Register(
                  kWaitToThrow,
                  [this] {
                    async::Promise<void> promise;
                    async::Future<void> future = promise.future();
                    registration_ =
                        std::make_shared<Cancellation::Registration>(
                            CurrentCall::Get()->cancellation().OnCancel(
                                [promise = std::move(promise)] {
                                  throw std::out_of_range("boom");
                                }));
                    entered_.Notify();
                    return future;
                  }),
              IsOk());
  StartAll();
  const async::Future<void> call = job_.agent(0).Async("w1", kWaitToThrow);
  entered_.WaitForNotification();
  EXPECT_TRUE(call.Cancel());
  // Dropped with the callback, it ends the call at its worker.
  while (job_.agent(1).num_server_calls() > 0) {
    EXPECT_THAT(job_.agent(0).Sync("w1", kOne), IsOkAndHolds(1));
  }
}

TEST_P(AgentExceptionsTest, CallbacksOfCallersAndMemberWatches) {
  StartAll();
  Agent& agent = job_.agent(0);
  absl::Notification second;
  int events = 0;
  const MemberWatch watch = agent.WatchMembers([&](const MemberEvent&) {
    if (++events == 2) second.Notify();
    throw std::out_of_range("boom in watch");
  });
  second.WaitForNotification();
  agent.UnwatchMembers(watch);
  agent.Async("w1", kOne).OnReady([](const auto&) {
    throw std::out_of_range("boom in callback");
  });
  EXPECT_THAT(agent.Sync("w1", kOne), IsOkAndHolds(1));
  agent.host().executor().Post(
      [] { throw std::out_of_range("boom in closure"); });
  EXPECT_THAT(agent.Sync("w1", kOne), IsOkAndHolds(1));
}

TEST_P(AgentExceptionsTest, Services) {
  job_.StartAll(2, [this](int rank, AgentOptions& options) {
    options.services.push_back(std::make_unique<ThrowingService>());
    if (rank == 0) {
      options.services.push_back(std::make_unique<HearingService>(&heard_));
    }
  });
  ExpectException(
      job_.agent(0)
          .host()
          .CallMethod("w1", kStreamCloseMethod, v1::StreamCloseRequest())
          .Wait()
          .status(),
      "boom in method");
  ExpectException(
      job_.agent(0)
          .host()
          .CallMethod("w1", kStreamNextMethod, v1::StreamNextRequest())
          .Wait()
          .status(),
      "not valid");
  EXPECT_THAT(job_.agent(1).Shutdown(/*graceful=*/false), IsOk());
  heard_.WaitForNotification();
}

INSTANTIATE_TEST_SUITE_P(All, AgentExceptionsTest,
                         testing::ValuesIn(kTransportParams),
                         TransportParamName());

}  // namespace
}  // namespace hawser::rpc
