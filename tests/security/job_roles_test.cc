// Tests of roles in certificates and of the calls that they permit, over gRPC,
// through launch::Worker.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "google/protobuf/message.h"
#include "gtest/gtest.h"
#include "launch/worker.h"
#include "net/auth/credentials.h"
#include "proto/rpc.pb.h"
#include "proto/rref.pb.h"
#include "proto/store.pb.h"
#include "rpc/agent/agent_options.h"
#include "rpc/agent/current_call.h"
#include "rpc/functions/function.h"
#include "rpc/grpc/transport.h"
#include "rpc/identity/worker_info.h"
#include "rpc/testing/raw_client.h"
#include "rpc/transport/payload.h"
#include "rpc/transport/transport.h"
#include "tests/security/job_credentials_test_fixture.h"

namespace hawser {
namespace {

using async::IsOk;
using async::IsOkAndHolds;
using async::StatusIs;
using launch::Worker;
using launch::WorkerOptions;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

using Roles = std::vector<std::string>;

inline constexpr rpc::Function<Roles()> kForPs{"roles.ForPs"};
inline constexpr rpc::Function<Roles()> kForAny{"roles.ForAny"};
inline constexpr rpc::Function<Roles()> kForObservers{"roles.ForObservers"};

// Transport that does not report its certificate, so that its agent may claim
// any roles.
class BoastingTransport final : public rpc::Transport {
 public:
  explicit BoastingTransport(std::shared_ptr<const net::Credentials> own)
      : transport_({.credentials = std::move(own)}) {}

  absl::StatusOr<std::string> Listen(
      std::string_view address,
      std::vector<rpc::TransportMethod> methods) override {
    return transport_.Listen(address, std::move(methods));
  }
  absl::StatusOr<std::shared_ptr<rpc::Connection>> Connect(
      const rpc::ConnectionTarget& target) override {
    return transport_.Connect(target);
  }
  void Probe(const std::string& address, absl::Duration timeout,
             absl::AnyInvocable<void(absl::Status) &&> done) override {
    transport_.Probe(address, timeout, std::move(done));
  }
  void Shutdown() override { transport_.Shutdown(); }

 private:
  rpc::GrpcTransport transport_;
};

class JobRolesTest : public SecureJobTest {
 protected:
  JobRolesTest() {
    const auto roles = [] { return rpc::CurrentCall::Get()->caller().roles; };
    EXPECT_THAT(registry_.Register(kForPs, roles, {.allowed_roles = {"ps"}}),
                IsOk());
    EXPECT_THAT(registry_.Register(kForAny, roles), IsOk());
    EXPECT_THAT(registry_.Register(kForObservers, roles,
                                   {.allowed_roles = {"observer", "ps"}}),
                IsOk());
  }
};

TEST_F(JobRolesTest, RolesInCertificatesPermitCalls) {
  auto keeper = Start(OptionsOf(0, {}));
  auto server = Start(OptionsOf(1, {"ps", "admin"}));
  auto trainer = Start(OptionsOf(2, {"trainer"}));
  EXPECT_THAT(server->agent().info().roles, ElementsAre("ps", "admin"));
  // The last calls use shared memory.
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(server->agent().Sync("worker0", kForPs),
                IsOkAndHolds(ElementsAre("ps", "admin")));
    EXPECT_THAT(
        trainer->agent().Sync("worker0", kForPs),
        StatusIs(absl::StatusCode::kPermissionDenied,
                 AllOf(HasSubstr("'worker2'"), HasSubstr("the role trainer"),
                       HasSubstr("the role ps"))));
    EXPECT_THAT(trainer->agent().Sync("worker0", kForAny),
                IsOkAndHolds(ElementsAre("trainer")));
    // Workers without roles may call functions without required roles.
    EXPECT_THAT(keeper->agent().Sync("worker1", kForAny),
                IsOkAndHolds(ElementsAre()));
    EXPECT_THAT(keeper->agent().Sync("worker1", kForPs),
                StatusIs(absl::StatusCode::kPermissionDenied));
  }
}

TEST_F(JobRolesTest, WorkerWithRolesThatItsCertificateLacksDoesNotStart) {
  WorkerOptions options = OptionsOf(0, {"trainer"});
  options.identity.roles = {"trainer", "ps"};
  EXPECT_THAT(Worker::Start(std::move(options)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("worker0.crt"), HasSubstr("'ps'"),
                             HasSubstr("certs issue --roles"))));
  // With the certificate in the transport only.
  WorkerOptions own = OptionsOf(0, {"trainer"});
  own.identity.roles = {"ps"};
  own.network.transport = std::make_unique<rpc::GrpcTransport>(
      rpc::GrpcTransportOptions{.credentials = authority_.Make("worker0")});
  EXPECT_THAT(Worker::Start(std::move(own)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("roles"), HasSubstr("'ps'"))));
  WorkerOptions fewer = OptionsOf(1, {"ps", "trainer"});
  fewer.identity.roles = {"ps"};
  EXPECT_THAT(Start(std::move(fewer))->agent().info().roles, ElementsAre("ps"));
}

TEST_F(JobRolesTest, WorkerThatClaimsMoreRolesIsRejectedAsCallerAndCallee) {
  // The workers reject each other's messages. Neither must be lost before the
  // test ends.
  const rpc::LivenessOptions patient = {.silent_limit = absl::Seconds(60),
                                        .unreachable_limit = absl::Seconds(60)};
  WorkerOptions first = OptionsOf(0, {});
  first.limits.liveness = patient;
  auto keeper = Start(std::move(first));
  WorkerOptions options = OptionsOf(1, {});
  options.identity.roles = {"ps"};
  options.limits.liveness = patient;
  options.network.credentials = {};
  options.network.transport =
      std::make_unique<BoastingTransport>(authority_.Make("worker1"));
  auto boaster = Start(std::move(options));
  // The keeper has read the claimed roles from the store.
  EXPECT_THAT(keeper->agent().Sync("worker1", kForAny),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       AllOf(HasSubstr("hawser://default/worker1"),
                             HasSubstr("the role ps"))));
  for (const auto& function : {kForPs, kForAny}) {
    EXPECT_THAT(boaster->agent().Sync("worker0", function),
                StatusIs(absl::StatusCode::kUnauthenticated,
                         AllOf(HasSubstr("worker1"), HasSubstr("'ps'"))));
  }
  EXPECT_THAT(boaster->Shutdown(/*graceful=*/false), IsOk());
}

// Client named "eye" of worker 0 and its store.
class Eye {
 public:
  Eye(std::shared_ptr<const net::Credentials> credentials,
      rpc::WorkerInfo worker)
      : worker_(std::move(worker)),
        client_({.credentials = std::move(credentials)}) {}

  absl::Status Call(const std::string& path,
                    const google::protobuf::Message& request,
                    google::protobuf::Message* reply) {
    return Parse(CallRaw(path, request.SerializeAsString()), reply);
  }

  // The requests of a store do not have a header.
  absl::Status CallStore(const std::string& address, const std::string& path,
                         const google::protobuf::Message& request,
                         google::protobuf::Message* reply) {
    return Parse(client_.Send({.address = address, .worker = worker_.name},
                              path, rpc::Payload(request.SerializeAsString())),
                 reply);
  }

  absl::Status CallFunction(const rpc::Function<Roles()>& function) {
    v1::CallReply reply;
    return Parse(CallRaw(rpc::RawClient::kCallPath,
                         rpc::RawClient::FunctionCall(function)),
                 &reply);
  }

 private:
  absl::StatusOr<std::string> CallRaw(const std::string& path,
                                      std::string body) {
    return client_.Call(
        {.name = "eye", .id = {}, .incarnation = {}, .address = ""}, worker_,
        path, std::move(body));
  }
  static absl::Status Parse(const absl::StatusOr<std::string>& bytes,
                            google::protobuf::Message* reply) {
    if (!bytes.ok()) return bytes.status();
    if (reply->ParseFromString(*bytes)) return absl::OkStatus();
    return absl::DataLossError("cannot parse the reply");
  }

  const rpc::WorkerInfo worker_;
  rpc::RawClient client_;
};

TEST_F(JobRolesTest, ObserversMayOnlyRead) {
  auto keeper = Start(OptionsOf(0, {}));
  Eye eye(authority_.Make("eye", {"observer"}), keeper->agent().info());
  v1::ListFunctionsReply functions;
  EXPECT_THAT(eye.Call("/hawser.v1.WorkerService/ListFunctions",
                       v1::ListFunctionsRequest(), &functions),
              IsOk());
  EXPECT_EQ(functions.functions_size(), 3);
  EXPECT_THAT(eye.CallFunction(kForObservers), IsOk());
  for (const auto& function : {kForAny, kForPs}) {
    EXPECT_THAT(eye.CallFunction(function),
                StatusIs(absl::StatusCode::kPermissionDenied,
                         AllOf(HasSubstr("'eye'"), HasSubstr("observer"))));
  }
  // Creation of references is denied too.
  v1::RRefCreateRequest create;
  create.set_function(std::string(kForObservers.name()));
  create.set_signature(kForObservers.Signature());
  v1::RRefCreateReply created;
  EXPECT_THAT(eye.Call("/hawser.v1.RRefService/Create", create, &created),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       HasSubstr("hawser.v1.RRefService.Create")));
  Eye worker(authority_.Make("eye"), keeper->agent().info());
  EXPECT_THAT(worker.CallFunction(kForAny), IsOk());
}

TEST_F(JobRolesTest, ObserversCannotJoinOrWriteToTheStore) {
  EXPECT_THAT(
      Worker::Start(OptionsOf(1, {"observer", "ps"})),
      StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("observer")));
  WorkerOptions options = OptionsOf(0, {});
  options.meeting_place.store = nullptr;
  options.meeting_place.master_port = 0;
  auto keeper = Start(std::move(options));
  for (const Roles& roles : {Roles{"observer"}, Roles{}}) {
    Eye eye(authority_.Make("eye", roles), keeper->agent().info());
    const auto call = [&](const std::string& method,
                          const google::protobuf::Message& request,
                          google::protobuf::Message* reply) {
      return eye.CallStore(keeper->master(), "/hawser.v1.Store/" + method,
                           request, reply);
    };
    v1::StoreHelloReply hello;
    ASSERT_THAT(call("Hello", v1::StoreHelloRequest(), &hello), IsOk());
    v1::StoreNumKeysRequest ask;
    ask.set_server_incarnation(hello.server_incarnation());
    v1::StoreNumKeysReply keys;
    EXPECT_THAT(call("NumKeys", ask, &keys), IsOk());
    EXPECT_GT(keys.num_keys(), 0);
    v1::StoreSetRequest set;
    set.set_server_incarnation(hello.server_incarnation());
    set.set_key("key");
    set.mutable_request_id()->set_client(1);
    set.mutable_request_id()->set_sequence(1);
    v1::StoreSetReply done;
    const absl::Status status = call("Set", set, &done);
    if (roles.empty()) {
      EXPECT_THAT(status, IsOk());
    } else {
      EXPECT_THAT(status, StatusIs(absl::StatusCode::kPermissionDenied,
                                   AllOf(HasSubstr("hawser://default/eye"),
                                         HasSubstr("observer"))));
    }
  }
}

}  // namespace
}  // namespace hawser
