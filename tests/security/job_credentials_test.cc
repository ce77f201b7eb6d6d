// Tests of jobs whose workers authenticate each other: accepted and rejected
// credentials, and the errors. Over gRPC, through launch::Worker.

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
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launch/worker.h"
#include "net/auth/certificate.h"
#include "net/auth/credentials.h"
#include "net/testing/test_credentials.h"
#include "tests/security/job_credentials_test_fixture.h"

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

TEST_F(JobCredentialsTest, WorkerOfAnotherAuthorityRejectsTheServer) {
  auto first = Worker::Start(OptionsOf(0));
  ASSERT_THAT(first, IsOk());
  EXPECT_THAT(CallOfFirst(OptionsOf(1, other_)),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       AllOf(HasSubstr("worker0"), HasSubstr("CA"))));
}

// The worker trusts the server's authority, but not the reverse.
TEST_F(JobCredentialsTest, ServerRejectsTheWorkerOfAnotherAuthority) {
  auto first = Worker::Start(OptionsOf(0));
  ASSERT_THAT(first, IsOk());
  WorkerOptions options = OptionsOf(1, other_);
  options.network.credentials.ca_path = BothAuthorities();
  EXPECT_THAT(CallOfFirst(std::move(options)),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       AllOf(HasSubstr("worker0"),
                             HasSubstr("hawser://default/worker1"))));
}

TEST_F(JobCredentialsTest, RevokedWorkersAreRejected) {
  WorkerOptions keeper = OptionsOf(0);
  keeper.network.credentials.crl_directory = authority_.crl_directory();
  auto first = Worker::Start(std::move(keeper));
  ASSERT_THAT(first, IsOk());
  // The certificates are revoked while worker 0 runs.
  for (int rank : {1, 2}) {
    const std::string name = absl::StrCat("worker", rank);
    EXPECT_THAT(CallOfFirst(OptionsOf(rank)), IsOk());
    WorkerOptions revoked = OptionsOf(rank);
    authority_.Revoke(name);
    EXPECT_THAT(CallOfFirst(std::move(revoked)),
                StatusIs(absl::StatusCode::kUnauthenticated,
                         AllOf(HasSubstr("hawser://default/" + name),
                               HasSubstr("revoked"))));
    // With a new certificate.
    EXPECT_THAT(CallOfFirst(OptionsOf(rank)), IsOk());
  }
}

// Another worker listens on the address of the called one.
TEST_F(JobCredentialsTest, AnotherWorkerAtTheAddressIsNotCalled) {
  auto first = Worker::Start(OptionsOf(0));
  ASSERT_THAT(first, IsOk());
  WorkerOptions moved = OptionsOf(1);
  moved.network.advertise_address = (*first)->agent().info().address;
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

TEST_F(JobCredentialsTest, WorkerWithAnothersCertificateDoesNotStart) {
  WorkerOptions renamed = OptionsOf(1);
  renamed.identity.name = "worker2";
  EXPECT_THAT(Worker::Start(std::move(renamed)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("hawser://default/worker1"),
                             HasSubstr("hawser://default/worker2"))));
  WorkerOptions moved = OptionsOf(1);
  moved.identity.job = "other";
  EXPECT_THAT(Worker::Start(std::move(moved)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("hawser://default/worker1"),
                             HasSubstr("hawser://other/worker1"))));
  EXPECT_THAT(Worker::Start(OptionsOf(1, authority_, absl::Milliseconds(1))),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("worker1.crt"), HasSubstr("expired"))));
}

// One authority signs the certificates of both jobs.
TEST_F(JobCredentialsTest, WorkersOfOtherJobsAreRejected) {
  WorkerOptions keeper = OptionsOf(0);
  keeper.meeting_place.store = nullptr;
  keeper.meeting_place.master_port = 0;
  auto first = Worker::Start(std::move(keeper));
  ASSERT_THAT(first, IsOk());
  const auto pair = net::IssueCertificate(authority_.authority(),
                                          {.job = "other", .worker = "worker1"},
                                          absl::Hours(1));
  ASSERT_THAT(pair, IsOk());
  WorkerOptions options = OptionsOf(1);
  authority_.Write("worker1.crt", pair->certificate);
  authority_.Write("worker1.key", pair->key);
  options.identity.job = "other";
  options.meeting_place.store = nullptr;
  options.meeting_place.url = absl::StrCat("tcp://", (*first)->master());
  EXPECT_THAT(Worker::Start(std::move(options)),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       AllOf(HasSubstr("hawser://default/worker0"),
                             HasSubstr("job other"))));
}

TEST_F(JobCredentialsTest, MissingAndWrongTokensAreRejected) {
  auto first = Worker::Start(OptionsOf(0));
  ASSERT_THAT(first, IsOk());
  WorkerOptions without = OptionsOf(1);
  without.network.credentials.token_path.clear();
  EXPECT_THAT(CallOfFirst(std::move(without)),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       AllOf(HasSubstr("worker0"), HasSubstr("no token"))));
  WorkerOptions wrong = OptionsOf(1);
  wrong.network.credentials.token_path =
      authority_.Write("wrong", std::string(64, 'b'));
  EXPECT_THAT(
      CallOfFirst(std::move(wrong)),
      StatusIs(absl::StatusCode::kUnauthenticated,
               AllOf(HasSubstr("not the job's"), Not(HasSubstr("bbbb")))));
}

TEST_F(JobCredentialsTest, AddressesOtherThanLoopbackRequireTls) {
  WorkerOptions open = OptionsOf(0);
  open.network.credentials = {};
  open.network.bind_address = "0.0.0.0:0";
  open.network.advertise_address = "127.0.0.1:0";
  EXPECT_THAT(Worker::Start(std::move(open)),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("0.0.0.0"),
                             HasSubstr("allow_insecure_network"))));
  WorkerOptions encrypted = OptionsOf(0);
  encrypted.network.bind_address = "0.0.0.0:0";
  encrypted.network.advertise_address = "127.0.0.1:0";
  auto first = Worker::Start(std::move(encrypted));
  ASSERT_THAT(first, IsOk());
  EXPECT_THAT(CallOfFirst(OptionsOf(1)), IsOk());
}

TEST_F(JobCredentialsTest, RunningWorkersReadRenewedFiles) {
  auto first = Worker::Start(OptionsOf(0));
  ASSERT_THAT(first, IsOk());
  auto companion = Worker::Start(OptionsOf(1));
  ASSERT_THAT(companion, IsOk());
  // Calls with new workers until a call ends with `code`.
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
                             HasSubstr("valid now"))));
  authority_.Issue("worker0");
  EXPECT_THAT(await(absl::StatusCode::kOk), IsOk());
}

TEST_F(JobCredentialsTest, AuthorityIsReplacedWhileRunning) {
  auto first = Worker::Start(OptionsOf(0));
  ASSERT_THAT(first, IsOk());
  auto companion = Worker::Start(OptionsOf(1));
  ASSERT_THAT(companion, IsOk());
  // Calls with new workers, whose certificates are from `issuer`, until a call
  // ends with `code`. These workers trust both authorities.
  const std::string both = BothAuthorities();
  const auto await = [&](net::TestAuthority& issuer, absl::StatusCode code) {
    const absl::Time end = absl::Now() + absl::Seconds(30);
    absl::Status status;
    do {
      // Existing connections continue.
      EXPECT_THAT((*companion)->agent().Sync("worker0", kTwice, 4),
                  IsOkAndHolds(8));
      WorkerOptions options = OptionsOf(2, issuer);
      options.network.credentials.ca_path = both;
      status = CallOfFirst(std::move(options));
    } while (status.code() != code && absl::Now() < end);
    return status;
  };
  EXPECT_THAT(await(authority_, absl::StatusCode::kOk), IsOk());
  EXPECT_THAT(await(other_, absl::StatusCode::kUnauthenticated),
              StatusIs(absl::StatusCode::kUnauthenticated));
  // Replaces the file from which running workers read their authority.
  const std::string old_one = authority_.authority().certificate;
  const std::string new_one = other_.authority().certificate;
  authority_.Write("ca.crt", old_one + new_one);
  EXPECT_THAT(await(other_, absl::StatusCode::kOk), IsOk());
  EXPECT_THAT(await(authority_, absl::StatusCode::kOk), IsOk());
  authority_.Write("ca.crt", new_one);
  EXPECT_THAT(await(authority_, absl::StatusCode::kUnauthenticated),
              StatusIs(absl::StatusCode::kUnauthenticated));
  EXPECT_THAT(await(other_, absl::StatusCode::kOk), IsOk());
}

}  // namespace
}  // namespace hawser
