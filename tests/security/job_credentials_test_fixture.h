// Fixtures of jobs whose workers authenticate each other.

#ifndef HAWSER_TESTS_SECURITY_JOB_CREDENTIALS_TEST_FIXTURE_H_
#define HAWSER_TESTS_SECURITY_JOB_CREDENTIALS_TEST_FIXTURE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/testing/status_matchers.h"
#include "gtest/gtest.h"
#include "launch/worker.h"
#include "net/auth/credentials.h"
#include "net/testing/test_credentials.h"
#include "rpc/functions/function.h"
#include "rpc/functions/function_registry.h"
#include "store/hash/store.h"

namespace hawser {

// A job over gRPC with a store in this process. One authority issues the
// certificates.
class SecureJobTest : public testing::Test {
 protected:
  // The options of worker `rank`, with a certificate for `roles`.
  launch::WorkerOptions OptionsOf(int rank,
                                  const std::vector<std::string>& roles = {}) {
    return WithCredentials(rank, authority_.Issue(absl::StrCat("worker", rank),
                                                  absl::Hours(24), roles));
  }

  launch::WorkerOptions WithCredentials(int rank,
                                        net::CredentialsOptions credentials) {
    launch::WorkerOptions options;
    options.identity.rank = rank;
    options.meeting_place.store = &store_;
    options.registry = &registry_;
    options.limits.call_timeout = absl::Seconds(20);
    options.network.credentials = std::move(credentials);
    return options;
  }

  std::unique_ptr<launch::Worker> Start(launch::WorkerOptions options) {
    auto worker = launch::Worker::Start(std::move(options));
    EXPECT_THAT(worker, async::IsOk());
    return *std::move(worker);
  }

  net::TestAuthority authority_;
  store::HashStore store_;
  rpc::FunctionRegistry registry_;
};

inline constexpr rpc::Function<int64_t(int64_t)> kTwice{"credentials.Twice"};

// A job that also has a token, and a second authority.
class JobCredentialsTest : public SecureJobTest {
 protected:
  JobCredentialsTest()
      : token_(authority_.Write("token", std::string(64, 'a'))) {
    EXPECT_THAT(registry_.Register(kTwice, [](int64_t x) { return 2 * x; }),
                async::IsOk());
  }

  // The options of worker `rank`, with files of `issuer`.
  launch::WorkerOptions OptionsOf(int rank, net::TestAuthority& issuer,
                                  absl::Duration lifetime = absl::Hours(24)) {
    launch::WorkerOptions options = WithCredentials(
        rank, issuer.Issue(absl::StrCat("worker", rank), lifetime));
    options.limits.call_timeout = absl::Seconds(5);
    options.network.credentials.token_path = token_;
    return options;
  }
  launch::WorkerOptions OptionsOf(int rank) {
    return OptionsOf(rank, authority_);
  }

  // Writes a file with the certificates of both authorities.
  std::string BothAuthorities() {
    return authority_.Write("both.crt", authority_.authority().certificate +
                                            other_.authority().certificate);
  }

  // Starts a worker with `options`, which calls worker 0. Returns the status.
  absl::Status CallOfFirst(launch::WorkerOptions options) {
    auto guest = launch::Worker::Start(std::move(options));
    if (!guest.ok()) return guest.status();
    absl::Status status = (*guest)->agent().Sync("worker0", kTwice, 4).status();
    EXPECT_THAT((*guest)->Shutdown(/*graceful=*/false), async::IsOk());
    return status;
  }

  net::TestAuthority other_;
  const std::string token_;
};

}  // namespace hawser

#endif  // HAWSER_TESTS_SECURITY_JOB_CREDENTIALS_TEST_FIXTURE_H_
