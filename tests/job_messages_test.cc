// Tests that every method of workers and stores rejects messages with a wrong
// source or destination, or without the token. The client is stock gRPC.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "gtest/gtest.h"
#include "launch/worker.h"
#include "net/auth/credentials.h"
#include "proto/dist_autograd.pb.h"
#include "proto/dist_optim.pb.h"
#include "proto/fragments.pb.h"
#include "proto/rpc.pb.h"
#include "proto/rref.pb.h"
#include "proto/same_host.pb.h"
#include "proto/store.pb.h"
#include "proto/stream.pb.h"
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
using rpc::ConnectionTarget;
using rpc::Payload;
using rpc::RawClient;
using testing::AllOf;
using testing::HasSubstr;

using JobMessagesTest = JobCredentialsTest;

// The paths of all methods in the files that define `messages`.
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

// A message from `source`. The header has the same field number in all
// messages.
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

// Target of calls to worker 0, or to its store, at `address`.
ConnectionTarget TargetOf(const std::string& address) {
  return {.address = address, .worker = "worker0"};
}

TEST_F(JobMessagesTest, EveryMethodRequiresTheToken) {
  WorkerOptions keeper = OptionsOf(0);
  keeper.meeting_place.store = nullptr;
  keeper.meeting_place.master_port = 0;
  auto first = Worker::Start(std::move(keeper));
  ASSERT_THAT(first, IsOk());
  RawClient client({.credentials = authority_.Make("worker1")});
  const ConnectionTarget worker = TargetOf((*first)->agent().info().address);
  const std::vector<std::string> methods = MethodsOfWorkers();
  EXPECT_GE(methods.size(), 18u);
  for (const std::string& path : methods) {
    for (const std::string& way : {path, path + "InFragments"}) {
      EXPECT_THAT(
          client.Send(worker, way, Payload()),
          StatusIs(absl::StatusCode::kUnauthenticated, HasSubstr("no token")))
          << way;
    }
  }
  // The token is required before memory is shared.
  for (const std::string& path :
       MethodsOf({v1::OpenSameHostRequest::descriptor()})) {
    EXPECT_THAT(
        client.Send(worker, path, Payload()),
        StatusIs(absl::StatusCode::kUnauthenticated, HasSubstr("no token")))
        << path;
  }
  const ConnectionTarget store = TargetOf((*first)->master());
  for (const std::string& path :
       MethodsOf({v1::StoreGetRequest::descriptor()})) {
    EXPECT_THAT(
        client.Send(store, path, Payload()),
        StatusIs(absl::StatusCode::kUnauthenticated, HasSubstr("no token")))
        << path;
  }
}

TEST_F(JobMessagesTest, NoMethodAcceptsTheNameOfAnotherWorker) {
  auto first = Worker::Start(OptionsOf(0));
  ASSERT_THAT(first, IsOk());
  const auto credentials =
      net::Credentials::Create(OptionsOf(1).network.credentials, std::nullopt);
  ASSERT_THAT(credentials, IsOk());
  RawClient client({.credentials = *credentials});
  const ConnectionTarget worker = TargetOf((*first)->agent().info().address);
  const v1::CallRequest request =
      RequestFor((*first)->agent().info(), "worker2");
  v1::MessageFragment whole;
  whole.set_content(request.SerializeAsString());
  whole.add_part_bytes(whole.content().size());
  for (const std::string& path : MethodsOfWorkers()) {
    const auto refused = StatusIs(absl::StatusCode::kUnauthenticated,
                                  AllOf(HasSubstr("hawser://default/worker1"),
                                        HasSubstr("hawser://default/worker2")));
    EXPECT_THAT(client.Send(worker, path, Payload(request.SerializeAsString())),
                refused)
        << path;
    EXPECT_THAT(client.Send(worker, path + "InFragments",
                            Payload(whole.SerializeAsString())),
                refused)
        << path;
  }
}

TEST_F(JobMessagesTest, NoMethodAcceptsTheIncarnationOfAnotherWorker) {
  auto first = Worker::Start(OptionsOf(0));
  ASSERT_THAT(first, IsOk());
  auto second = Worker::Start(OptionsOf(2));
  ASSERT_THAT(second, IsOk());
  // Worker 0 knows worker 2 after this call.
  EXPECT_THAT((*first)->agent().Sync("worker2", kTwice, 4), IsOkAndHolds(8));
  const auto credentials =
      net::Credentials::Create(OptionsOf(1).network.credentials, std::nullopt);
  ASSERT_THAT(credentials, IsOk());
  RawClient client({.credentials = *credentials});
  const ConnectionTarget worker = TargetOf((*first)->agent().info().address);
  v1::CallRequest request = RequestFor((*first)->agent().info(), "worker1");
  request.mutable_header()->set_source_incarnation(
      rpc::ToNumber((*second)->agent().info().incarnation));
  for (const std::string& path : MethodsOfWorkers()) {
    EXPECT_THAT(client.Send(worker, path, Payload(request.SerializeAsString())),
                StatusIs(absl::StatusCode::kUnauthenticated,
                         AllOf(HasSubstr("worker1"), HasSubstr("worker2"))))
        << path;
  }
  EXPECT_THAT((*second)->agent().Sync("worker0", kTwice, 4), IsOkAndHolds(8));
}

}  // namespace
}  // namespace hawser
