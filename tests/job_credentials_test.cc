// Jobs whose workers prove to each other who they are: what is let in, what is
// refused and how it is told, over gRPC, through launch::Worker.

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/future.h"
#include "async/status_matchers.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "grpcpp/client_context.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/byte_buffer.h"
#include "gtest/gtest.h"
#include "launch/worker.h"
#include "net/certificate.h"
#include "net/credentials.h"
#include "net/peer_verification.h"
#include "net/test_credentials.h"
#include "proto/dist_autograd.pb.h"
#include "proto/dist_optim.pb.h"
#include "proto/pieces.pb.h"
#include "proto/rpc.pb.h"
#include "proto/rref.pb.h"
#include "proto/store.pb.h"
#include "proto/stream.pb.h"
#include "rpc/function.h"
#include "rpc/function_registry.h"
#include "rpc/types.h"
#include "store/hash_store.h"

namespace hawser {
namespace {

using async::IsOk;
using async::IsOkAndHolds;
using async::StatusIs;
using launch::Worker;
using launch::WorkerOptions;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

inline constexpr rpc::Function<int64_t(int64_t)> kTwice{"credentials.Twice"};

class JobCredentialsTest : public testing::Test {
 protected:
  JobCredentialsTest()
      : token_(authority_.Write("token", std::string(64, 'a'))) {
    EXPECT_THAT(registry_.Register(kTwice, [](int64_t x) { return 2 * x; }),
                IsOk());
  }

  // Of worker `rank`, with files of `issuer`, which meets others at store_.
  WorkerOptions OptionsOf(int rank, net::TestAuthority& issuer,
                          absl::Duration lifetime = absl::Hours(24)) {
    WorkerOptions options;
    options.rank = rank;
    options.store = &store_;
    options.registry = &registry_;
    options.timeout = absl::Seconds(5);
    options.credentials = issuer.Issue(absl::StrCat("worker", rank), lifetime);
    options.credentials.token_path = token_;
    return options;
  }
  WorkerOptions OptionsOf(int rank) { return OptionsOf(rank, authority_); }

  // A file with the certificates of both authorities.
  std::string BothAuthorities() {
    return authority_.Write("both.crt", authority_.authority().certificate +
                                            other_.authority().certificate);
  }

  // What a call of worker 0 by a worker with `options` ends with.
  absl::Status CallOfFirst(WorkerOptions options) {
    auto guest = Worker::Start(std::move(options));
    if (!guest.ok()) return guest.status();
    absl::Status status = (*guest)->agent().Sync("worker0", kTwice, 4).status();
    EXPECT_THAT((*guest)->Shutdown(/*graceful=*/false), IsOk());
    return status;
  }

  net::TestAuthority authority_;
  net::TestAuthority other_;
  const std::string token_;
  store::HashStore store_;
  rpc::FunctionRegistry registry_;
};

TEST_F(JobCredentialsTest, WorkersOfOneAuthorityCallEachOther) {
  auto first = Worker::Start(OptionsOf(0));
  ASSERT_THAT(first, IsOk());
  auto second = Worker::Start(OptionsOf(1));
  ASSERT_THAT(second, IsOk());
  EXPECT_THAT((*second)->agent().Sync("worker0", kTwice, 4), IsOkAndHolds(8));
  EXPECT_THAT((*first)->agent().Sync("worker1", kTwice, 5), IsOkAndHolds(10));
  EXPECT_THAT((*second)->Shutdown(), IsOk());
  EXPECT_THAT((*first)->Shutdown(), IsOk());
}

TEST_F(JobCredentialsTest, AnotherAuthoritysWorkerRefusesTheServer) {
  auto first = Worker::Start(OptionsOf(0));
  ASSERT_THAT(first, IsOk());
  EXPECT_THAT(CallOfFirst(OptionsOf(1, other_)),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       AllOf(HasSubstr("worker0"), HasSubstr("CA"))));
}

// It believes the server, which does not believe it.
TEST_F(JobCredentialsTest, AnotherAuthoritysWorkerIsRefusedByTheServer) {
  auto first = Worker::Start(OptionsOf(0));
  ASSERT_THAT(first, IsOk());
  WorkerOptions options = OptionsOf(1, other_);
  options.credentials.ca_path = BothAuthorities();
  EXPECT_THAT(CallOfFirst(std::move(options)),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       AllOf(HasSubstr("worker0"),
                             HasSubstr("hawser://default/worker1"))));
}

TEST_F(JobCredentialsTest, RevokedWorkersAreRefused) {
  WorkerOptions keeper = OptionsOf(0);
  keeper.credentials.crl_directory = authority_.crl_directory();
  auto first = Worker::Start(std::move(keeper));
  ASSERT_THAT(first, IsOk());
  // One after the other while worker 0 runs.
  for (int rank : {1, 2}) {
    const std::string name = absl::StrCat("worker", rank);
    EXPECT_THAT(CallOfFirst(OptionsOf(rank)), IsOk());
    WorkerOptions revoked = OptionsOf(rank);
    authority_.Revoke(name);
    EXPECT_THAT(CallOfFirst(std::move(revoked)),
                StatusIs(absl::StatusCode::kUnauthenticated,
                         AllOf(HasSubstr("hawser://default/" + name),
                               HasSubstr("revoked"))));
    // Issued anew.
    EXPECT_THAT(CallOfFirst(OptionsOf(rank)), IsOk());
  }
}

// Whoever took the address of the worker that is wanted.
TEST_F(JobCredentialsTest, AnotherWorkerAtTheAddressIsNotCalled) {
  auto first = Worker::Start(OptionsOf(0));
  ASSERT_THAT(first, IsOk());
  WorkerOptions moved = OptionsOf(1);
  moved.advertise_address = (*first)->agent().info().address;
  auto second = Worker::Start(std::move(moved));
  ASSERT_THAT(second, IsOk());
  auto third = Worker::Start(OptionsOf(2));
  ASSERT_THAT(third, IsOk());
  EXPECT_THAT((*third)->agent().Sync("worker1", kTwice, 4),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       AllOf(HasSubstr("hawser://default/worker0"),
                             HasSubstr("hawser://default/worker1"))));
  for (auto* worker : {&third, &second, &first}) {
    EXPECT_THAT((**worker)->Shutdown(/*graceful=*/false), IsOk());
  }
}

TEST_F(JobCredentialsTest, ACertificateOfAnotherWorkerOrJobDoesNotStart) {
  WorkerOptions renamed = OptionsOf(1);
  renamed.name = "worker2";
  EXPECT_THAT(Worker::Start(std::move(renamed)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("hawser://default/worker1"),
                             HasSubstr("hawser://default/worker2"))));
  WorkerOptions moved = OptionsOf(1);
  moved.job = "other";
  EXPECT_THAT(Worker::Start(std::move(moved)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("hawser://default/worker1"),
                             HasSubstr("hawser://other/worker1"))));
  EXPECT_THAT(Worker::Start(OptionsOf(1, authority_, absl::Milliseconds(1))),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("worker1.crt"), HasSubstr("expired"))));
}

// The same authority signs for both jobs.
TEST_F(JobCredentialsTest, WorkersOfOtherJobsAreRefused) {
  WorkerOptions keeper = OptionsOf(0);
  keeper.store = nullptr;
  keeper.master_port = 0;
  auto first = Worker::Start(std::move(keeper));
  ASSERT_THAT(first, IsOk());
  const auto pair = net::IssueCertificate(authority_.authority(),
                                          {.job = "other", .worker = "worker1"},
                                          absl::Hours(1));
  ASSERT_THAT(pair, IsOk());
  WorkerOptions options = OptionsOf(1);
  authority_.Write("worker1.crt", pair->certificate);
  authority_.Write("worker1.key", pair->key);
  options.job = "other";
  options.store = nullptr;
  options.init_url = absl::StrCat("tcp://", (*first)->master());
  EXPECT_THAT(Worker::Start(std::move(options)),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       AllOf(HasSubstr("hawser://default/worker0"),
                             HasSubstr("job other"))));
}

TEST_F(JobCredentialsTest, MissingAndWrongTokensAreRefused) {
  auto first = Worker::Start(OptionsOf(0));
  ASSERT_THAT(first, IsOk());
  WorkerOptions without = OptionsOf(1);
  without.credentials.token_path.clear();
  EXPECT_THAT(CallOfFirst(std::move(without)),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       AllOf(HasSubstr("worker0"), HasSubstr("no token"))));
  WorkerOptions wrong = OptionsOf(1);
  wrong.credentials.token_path =
      authority_.Write("wrong", std::string(64, 'b'));
  EXPECT_THAT(
      CallOfFirst(std::move(wrong)),
      StatusIs(absl::StatusCode::kUnauthenticated,
               AllOf(HasSubstr("not the job's"), Not(HasSubstr("bbbb")))));
}

TEST_F(JobCredentialsTest, OffLoopbackNothingStartsWithoutTls) {
  WorkerOptions open = OptionsOf(0);
  open.credentials = {};
  open.bind_address = "0.0.0.0:0";
  open.advertise_address = "127.0.0.1:0";
  EXPECT_THAT(Worker::Start(std::move(open)),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("0.0.0.0"),
                             HasSubstr("allow_insecure_network"))));
  WorkerOptions encrypted = OptionsOf(0);
  encrypted.bind_address = "0.0.0.0:0";
  encrypted.advertise_address = "127.0.0.1:0";
  auto first = Worker::Start(std::move(encrypted));
  ASSERT_THAT(first, IsOk());
  EXPECT_THAT(CallOfFirst(OptionsOf(1)), IsOk());
}

TEST_F(JobCredentialsTest, RenewedFilesAreTakenWhileRunning) {
  auto first = Worker::Start(OptionsOf(0));
  ASSERT_THAT(first, IsOk());
  auto companion = Worker::Start(OptionsOf(1));
  ASSERT_THAT(companion, IsOk());
  // Calls of ever new workers until one ends so.
  const auto await = [&](absl::StatusCode code) {
    const absl::Time end = absl::Now() + absl::Seconds(30);
    absl::Status status;
    do {
      EXPECT_THAT((*companion)->agent().Sync("worker0", kTwice, 4),
                  IsOkAndHolds(8));
      status = CallOfFirst(OptionsOf(2));
    } while (status.code() != code && absl::Now() < end);
    return status;
  };
  EXPECT_THAT(await(absl::StatusCode::kOk), IsOk());
  authority_.Issue("worker0", absl::Milliseconds(1));
  EXPECT_THAT(await(absl::StatusCode::kUnauthenticated),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       AllOf(HasSubstr("hawser://default/worker0"),
                             HasSubstr("in date"))));
  authority_.Issue("worker0");
  EXPECT_THAT(await(absl::StatusCode::kOk), IsOk());
}

// Speaks to worker 0 on stock gRPC, message by message.
class RawClient {
 public:
  RawClient(std::shared_ptr<const net::Credentials> credentials,
            const std::string& address)
      : credentials_(std::move(credentials)),
        verification_(credentials_, "worker0"),
        stub_(verification_.CreateChannel(address, {})) {}

  absl::Status Call(const std::string& path, const std::string& request) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::seconds(10));
    credentials_->Sign(context);
    const grpc::Slice slice(request);
    const grpc::ByteBuffer bytes(&slice, 1);
    grpc::ByteBuffer reply;
    async::Promise<void> done;
    async::Future<void> ended = done.future();
    stub_.UnaryCall(&context, path, grpc::StubOptions(), &bytes, &reply,
                    [&done](const grpc::Status& status) {
                      done.Set(absl::Status(
                          static_cast<absl::StatusCode>(status.error_code()),
                          status.error_message()));
                    });
    return std::move(ended).Wait();
  }

 private:
  const std::shared_ptr<const net::Credentials> credentials_;
  const net::PeerVerification verification_;
  grpc::GenericStub stub_;
};

// The paths of all methods of the files of `messages`.
std::vector<std::string> MethodsOf(
    const std::vector<const google::protobuf::Descriptor*>& messages) {
  std::vector<std::string> paths;
  for (const google::protobuf::Descriptor* message : messages) {
    const google::protobuf::FileDescriptor* file = message->file();
    for (int i = 0; i < file->service_count(); ++i) {
      for (int j = 0; j < file->service(i)->method_count(); ++j) {
        const auto* method = file->service(i)->method(j);
        paths.push_back(absl::StrCat("/", file->service(i)->full_name(), "/",
                                     method->name()));
      }
    }
  }
  return paths;
}

std::vector<std::string> MethodsOfWorkers() {
  return MethodsOf(
      {v1::CallRequest::descriptor(), v1::StreamOpenRequest::descriptor(),
       v1::RRefCreateRequest::descriptor(), v1::GradientRequest::descriptor(),
       v1::CreateOptimizerRequest::descriptor()});
}

// A message of `source`; the header is the same field of all.
v1::CallRequest RequestFor(const rpc::WorkerInfo& destination,
                           const std::string& source) {
  v1::CallRequest request;
  v1::RequestHeader& header = *request.mutable_header();
  header.set_job("default");
  header.set_source(source);
  header.set_destination(destination.name);
  header.set_destination_incarnation(rpc::ToNumber(destination.incarnation));
  return request;
}

TEST_F(JobCredentialsTest, EveryMethodWantsTheToken) {
  WorkerOptions keeper = OptionsOf(0);
  keeper.store = nullptr;
  keeper.master_port = 0;
  auto first = Worker::Start(std::move(keeper));
  ASSERT_THAT(first, IsOk());
  RawClient worker(authority_.Make("worker1"),
                   (*first)->agent().info().address);
  const std::vector<std::string> methods = MethodsOfWorkers();
  EXPECT_GE(methods.size(), 18u);
  for (const std::string& path : methods) {
    for (const std::string& way : {path, path + "InPieces"}) {
      EXPECT_THAT(
          worker.Call(way, ""),
          StatusIs(absl::StatusCode::kUnauthenticated, HasSubstr("no token")))
          << way;
    }
  }
  RawClient store(authority_.Make("worker1"), (*first)->master());
  for (const std::string& path :
       MethodsOf({v1::StoreGetRequest::descriptor()})) {
    EXPECT_THAT(
        store.Call(path, ""),
        StatusIs(absl::StatusCode::kUnauthenticated, HasSubstr("no token")))
        << path;
  }
}

TEST_F(JobCredentialsTest, NoMethodTakesAMessageInAnothersName) {
  auto first = Worker::Start(OptionsOf(0));
  ASSERT_THAT(first, IsOk());
  const auto credentials =
      net::Credentials::Create(OptionsOf(1).credentials, std::nullopt);
  ASSERT_THAT(credentials, IsOk());
  RawClient client(*credentials, (*first)->agent().info().address);
  const v1::CallRequest request =
      RequestFor((*first)->agent().info(), "worker2");
  v1::MessagePiece whole;
  whole.set_content(request.SerializeAsString());
  whole.add_part_bytes(whole.content().size());
  for (const std::string& path : MethodsOfWorkers()) {
    const auto refused = StatusIs(absl::StatusCode::kUnauthenticated,
                                  AllOf(HasSubstr("hawser://default/worker1"),
                                        HasSubstr("hawser://default/worker2")));
    EXPECT_THAT(client.Call(path, request.SerializeAsString()), refused)
        << path;
    EXPECT_THAT(client.Call(path + "InPieces", whole.SerializeAsString()),
                refused)
        << path;
  }
}

TEST_F(JobCredentialsTest, NoMessageIsOfAnothersIncarnation) {
  auto first = Worker::Start(OptionsOf(0));
  ASSERT_THAT(first, IsOk());
  auto second = Worker::Start(OptionsOf(2));
  ASSERT_THAT(second, IsOk());
  // It knows the other then.
  EXPECT_THAT((*first)->agent().Sync("worker2", kTwice, 4), IsOkAndHolds(8));
  const auto credentials =
      net::Credentials::Create(OptionsOf(1).credentials, std::nullopt);
  ASSERT_THAT(credentials, IsOk());
  RawClient client(*credentials, (*first)->agent().info().address);
  v1::CallRequest request = RequestFor((*first)->agent().info(), "worker1");
  request.mutable_header()->set_source_incarnation(
      rpc::ToNumber((*second)->agent().info().incarnation));
  for (const std::string& path : MethodsOfWorkers()) {
    EXPECT_THAT(client.Call(path, request.SerializeAsString()),
                StatusIs(absl::StatusCode::kUnauthenticated,
                         AllOf(HasSubstr("worker1"), HasSubstr("worker2"))))
        << path;
  }
  EXPECT_THAT((*second)->agent().Sync("worker0", kTwice, 4), IsOkAndHolds(8));
}

}  // namespace
}  // namespace hawser
