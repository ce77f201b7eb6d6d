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
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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

  const CallerPermission permission_{state_, &senders_,
                                     /*authenticated=*/false};
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

TEST_F(CallerPermissionTest, OnlyUnprovenCallersMayHaveOtherRoles) {
  const WorkerInfo unknown = FakeServiceHost::MakeWorker(2);
  EXPECT_TRUE(permission_.MayHaveOtherRoles(unknown));
  EXPECT_FALSE(CallerPermission(state_, &senders_, /*authenticated=*/true)
                   .MayHaveOtherRoles(unknown));
  // Roles of a record are all that the caller has.
  WorkerInfo known = unknown;
  known.roles = {"ps"};
  EXPECT_FALSE(permission_.MayHaveOtherRoles(known));
  // A known peer has the roles of its record.
  EXPECT_FALSE(permission_.MayHaveOtherRoles(peer_));
  // It became known after its message was admitted.
  senders_.AddPeer(PeerWith({"trainer"}));
  EXPECT_TRUE(permission_.MayHaveOtherRoles(peer_));
}

TEST_F(CallerPermissionTest, LookUpUsesTheRolesOfAKnownPeer) {
  senders_.AddPeer(PeerWith({"trainer"}));
  EXPECT_THAT(permission_.LookUpFunction(*for_trainers_, peer_, 0), IsOk());
  EXPECT_THAT(senders_.looked_up, IsEmpty());
}

TEST_F(CallerPermissionTest, LookUpReadsTheRecordOfAnUnknownCaller) {
  WorkerInfo unknown = FakeServiceHost::MakeWorker(2);
  EXPECT_THAT(permission_.LookUpFunction(*for_trainers_, unknown, 0),
              StatusIs(absl::StatusCode::kPermissionDenied));
  WorkerInfo record = unknown;
  record.roles = {"trainer"};
  senders_.SetRecord(record);
  EXPECT_THAT(permission_.LookUpFunction(*for_trainers_, unknown, 0), IsOk());
  EXPECT_THAT(senders_.looked_up, ElementsAre("w2", "w2"));
  // The name now belongs to another process.
  unknown.incarnation = Incarnation{3};
  EXPECT_THAT(permission_.LookUpFunction(*for_trainers_, unknown, 0),
              StatusIs(absl::StatusCode::kPermissionDenied));
  senders_.SetStoreError(absl::UnavailableError("the store is out of reach"));
  EXPECT_THAT(permission_.LookUpFunction(*for_trainers_, unknown, 0),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("store")));
}

TEST_F(CallerPermissionTest, LookUpChecksTheSizeAsWell) {
  senders_.AddPeer(PeerWith({"trainer"}));
  const auto limited =
      FunctionWith({.allowed_roles = {"trainer"}, .max_request_bytes = 100});
  EXPECT_THAT(permission_.LookUpFunction(*limited, peer_, 101),
              StatusIs(absl::StatusCode::kResourceExhausted));
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
