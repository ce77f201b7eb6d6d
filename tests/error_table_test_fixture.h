// Fixture for tests of errors, with workers that call each other by several
// routes.

#ifndef HAWSER_TESTS_ERROR_TABLE_TEST_FIXTURE_H_
#define HAWSER_TESTS_ERROR_TABLE_TEST_FIXTURE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
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
#include "absl/time/time.h"
#include "async/coroutine.h"
#include "async/future.h"
#include "async/status_macros.h"
#include "async/testing/status_matchers.h"
#include "gtest/gtest.h"
#include "rpc/agent/agent.h"
#include "rpc/agent/current_call.h"
#include "rpc/errors/error_detail.h"
#include "rpc/functions/function.h"
#include "rpc/functions/function_registry.h"
#include "rpc/identity/worker_info.h"
#include "rpc/membership/member_event.h"
#include "rpc/testing/agent_test_fixture.h"
#include "rpc/testing/transport_test_param.h"
#include "rpc/wire/wire_traits.h"
#include "rref/rref.h"
#include "rref/rref_service.h"

namespace hawser::tests {

// An argument or result whose encoding and decoding can fail.
struct Fragile {
  enum Kind : int64_t {
    kSound,
    kNoEncoding,
    kNoDecoding,
    kThrowsEncoding,
    kThrowsDecoding
  };
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
    if (value.kind == Fragile::kThrowsEncoding) {
      throw std::out_of_range("no such field");
    }
    encoder.WriteInt(value.kind);
    return absl::OkStatus();
  }
  static absl::StatusOr<Fragile> Decode(Decoder& decoder) {
    ASSIGN_OR_RETURN(const int64_t kind, decoder.ReadInt());
    if (kind == Fragile::kNoDecoding) {
      return absl::InvalidArgumentError("this cannot be read");
    }
    if (kind == Fragile::kThrowsDecoding) {
      throw std::out_of_range("no such field");
    }
    return Fragile{kind};
  }
};

namespace hawser::tests {

inline constexpr rpc::Function<int64_t()> kOne{"table.One"};
inline constexpr rpc::Function<int64_t(int64_t)> kFail{"table.Fail"};
inline constexpr rpc::Function<int64_t()> kHold{"table.Hold"};
inline constexpr rpc::Function<int64_t()> kThrow{"table.Throw"};
inline constexpr rpc::Function<int64_t()> kThrowLater{"table.ThrowLater"};
inline constexpr rpc::Function<int64_t()> kNoFuture{"table.NoFuture"};
inline constexpr rpc::Function<int64_t(Fragile)> kTake{"table.Take"};
inline constexpr rpc::Function<Fragile(int64_t)> kGive{"table.Give"};
inline constexpr rpc::Function<int64_t(std::string)> kShort{"table.Short"};
inline constexpr rpc::Function<int64_t()> kGuarded{"table.Guarded"};
inline constexpr rpc::Function<void()> kRelay{"table.Relay"};

// The longest request that kShort accepts.
inline constexpr size_t kShortBytes = 1000;

// Routes by which w0 calls w2.
enum class Route {
  kSync,
  kAsync,
  // Creates a reference and fetches its value.
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
    ASSERT_THAT(registry.Register(kOne, [] { return 1; }), async::IsOk());
    ASSERT_THAT(registry.Register(kFail,
                                  [](int64_t code) -> absl::StatusOr<int64_t> {
                                    return absl::Status(
                                        static_cast<absl::StatusCode>(code),
                                        "as requested");
                                  }),
                async::IsOk());
    ASSERT_THAT(registry.Register(kHold,
                                  [this] {
                                    async::Future<int64_t> held =
                                        held_.future();
                                    entered_.Notify();
                                    return held;
                                  }),
                async::IsOk());
    ASSERT_THAT(registry.Register(kThrow,
                                  []() -> int64_t {
                                    throw std::out_of_range("no such row");
                                  }),
                async::IsOk());
    ASSERT_THAT(registry.Register(kThrowLater,
                                  []() -> async::Future<int64_t> {
                                    co_await async::MakeReadyFuture<int64_t>(1);
                                    throw std::out_of_range("no such row");
                                  }),
                async::IsOk());
    ASSERT_THAT(
        registry.Register(kNoFuture, [] { return async::Future<int64_t>(); }),
        async::IsOk());
    ASSERT_THAT(
        registry.Register(kTake, [](const Fragile&) { return int64_t{1}; }),
        async::IsOk());
    ASSERT_THAT(
        registry.Register(kGive, [](int64_t kind) { return Fragile{kind}; }),
        async::IsOk());
    ASSERT_THAT(registry.Register(kShort, [](const std::string&) { return 1; },
                                  {.max_request_bytes = kShortBytes}),
                async::IsOk());
    ASSERT_THAT(registry.Register(kGuarded, [] { return 1; },
                                  {.allowed_roles = {"trainer"}}),
                async::IsOk());
    ASSERT_THAT(
        registry.Register(
            kRelay,
            [this] { return relay_(rpc::CurrentCall::Get()->agent()); }),
        async::IsOk());
    job_.StartAll(3, [](int, rpc::AgentOptions& options) {
      options.services.push_back(std::make_unique<rref::RRefService>());
      options.liveness.heartbeat_interval = absl::Milliseconds(100);
    });
    target_ = job_.agent(2).info();
  }

  Route route() const { return std::get<1>(GetParam()); }

  // Calls by the route of the test and returns the error.
  template <class R, class... A>
  absl::Status Call(const rpc::Destination& to, const rpc::CallOptions& options,
                    const rpc::Function<R(A...)>& function,
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
  absl::Status Call(const rpc::Function<R(A...)>& function,
                    const std::type_identity_t<A>&... arguments) {
    return Call("w2", rpc::CallOptions(), function, arguments...);
  }

  void ExpectAt(const rpc::WorkerInfo& worker, bool maybe_applied,
                const absl::Status& status) {
    const std::optional<rpc::ErrorDetail> found = rpc::GetErrorDetail(status);
    ASSERT_TRUE(found.has_value()) << status;
    EXPECT_EQ(found->worker, worker.name) << status;
    EXPECT_EQ(found->incarnation, worker.incarnation) << status;
    EXPECT_EQ(found->maybe_applied, maybe_applied) << status;
  }

  // Stops w2 without a graceful leave, and waits until w0 and w1 have detected
  // its loss.
  void AwaitLossOfTarget() {
    absl::Notification known[2];
    std::vector<rpc::MemberWatch> watches;
    for (int i = 0; i < 2; ++i) {
      watches.push_back(job_.agent(i).WatchMembers(
          [&known, i](const rpc::MemberEvent& event) {
            if (event.kind == rpc::MemberEvent::Kind::kLost) known[i].Notify();
          }));
    }
    ASSERT_THAT(job_.agent(2).Shutdown(/*graceful=*/false), async::IsOk());
    for (int i = 0; i < 2; ++i) {
      known[i].WaitForNotification();
      job_.agent(i).UnwatchMembers(watches[i]);
    }
  }

  async::Promise<int64_t> held_;
  absl::Notification entered_;
  std::function<absl::Status(rpc::Agent&)> relay_;
  rpc::WorkerInfo target_;
  // Destroyed first, because its threads use the members above.
  rpc::TestJob job_;
};

inline std::string RouteName(Route route) {
  const char* names[] = {"Sync", "Async", "Remote", "TwoHops"};
  return names[static_cast<int>(route)];
}

inline const auto kParamName = [](const auto& info) {
  return absl::StrCat(rpc::ToString(std::get<0>(info.param)),
                      RouteName(std::get<1>(info.param)));
};

}  // namespace hawser::tests

#endif  // HAWSER_TESTS_ERROR_TABLE_TEST_FIXTURE_H_
