#include "rpc/agent/inbound/caller_permission.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/functions/function_registry.h"
#include "rpc/functions/method.h"
#include "rpc/functions/method_definition.h"
#include "rpc/functions/method_table.h"
#include "rpc/identity/worker_info.h"
#include "rpc/testing/fakes/fake_service_host.h"
#include "rpc/testing/fakes/inbound_test_fixture.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::unique_ptr<const RegisteredFunction> FunctionWith(
    FunctionOptions options) {
  return MakeFunction<void>(
      "test.F", "void()", [] {}, std::move(options));
}

class CallerPermissionTest : public InboundTestFixture {
 protected:
  WorkerInfo PeerWith(std::vector<std::string> roles) const {
    WorkerInfo peer = peer_;
    peer.roles = std::move(roles);
    return peer;
  }

  const CallerPermission permission_{state_};
  const std::unique_ptr<const RegisteredFunction> for_trainers_ =
      FunctionWith({.allowed_roles = {"trainer"}});
};

TEST_F(CallerPermissionTest, FunctionIsForCallersWithOneOfItsRoles) {
  EXPECT_THAT(
      permission_.CheckFunction(*for_trainers_, PeerWith({"ps"}), 0),
      StatusIs(absl::StatusCode::kPermissionDenied,
               AllOf(HasSubstr(ToString(peer_)), HasSubstr("the role ps"),
                     HasSubstr("'test.F'"), HasSubstr("the role trainer"))));
  EXPECT_THAT(permission_.CheckFunction(*for_trainers_, peer_, 0),
              StatusIs(absl::StatusCode::kPermissionDenied));
  EXPECT_THAT(
      permission_.CheckFunction(*for_trainers_, PeerWith({"ps", "trainer"}), 0),
      IsOk());
}

TEST_F(CallerPermissionTest, FunctionWithoutRolesIsForAllButObservers) {
  const auto function = FunctionWith({});
  EXPECT_THAT(permission_.CheckFunction(*function, peer_, 0), IsOk());
  EXPECT_THAT(permission_.CheckFunction(*function, PeerWith({"ps"}), 0),
              IsOk());
  EXPECT_THAT(permission_.CheckFunction(*function, PeerWith({"observer"}), 0),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       HasSubstr("any role but observer")));
}

TEST_F(CallerPermissionTest, WorkerMayCallItsOwnFunctions) {
  EXPECT_THAT(permission_.CheckFunction(*for_trainers_, self_, 0), IsOk());
  // Neither name nor incarnation alone proves that.
  WorkerInfo other = self_;
  other.incarnation = peer_.incarnation;
  EXPECT_THAT(permission_.CheckFunction(*for_trainers_, other, 0),
              StatusIs(absl::StatusCode::kPermissionDenied));
  other = self_;
  other.name = peer_.name;
  EXPECT_THAT(permission_.CheckFunction(*for_trainers_, other, 0),
              StatusIs(absl::StatusCode::kPermissionDenied));
}

TEST_F(CallerPermissionTest, RequestsAboveTheLimitOfTheFunctionAreRejected) {
  const auto limited = FunctionWith({.max_request_bytes = 100});
  EXPECT_THAT(permission_.CheckFunction(*limited, peer_, 100), IsOk());
  EXPECT_THAT(permission_.CheckFunction(*limited, peer_, 101),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("101"), HasSubstr("'test.F'"),
                             HasSubstr("max_request_bytes"))));
  EXPECT_THAT(
      permission_.CheckFunction(*FunctionWith({}), peer_, size_t{1} << 40),
      IsOk());
}

TEST_F(CallerPermissionTest, ObserversMayCallMethodsForObservers) {
  const MethodDefinition definition{.name = "test.Service.M", .path = ""};
  RegisteredMethod method{&definition, nullptr, MethodOptions()};
  const WorkerInfo observer = PeerWith({"observer", "ps"});
  EXPECT_THAT(permission_.CheckMethod(method, observer),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       AllOf(HasSubstr("the roles observer, ps"),
                             HasSubstr("test.Service.M"))));
  EXPECT_THAT(permission_.CheckMethod(method, PeerWith({"ps"})), IsOk());
  EXPECT_THAT(permission_.CheckMethod(method, peer_), IsOk());
  method.options.for_observers = true;
  EXPECT_THAT(permission_.CheckMethod(method, observer), IsOk());
}

}  // namespace
}  // namespace hawser::rpc
