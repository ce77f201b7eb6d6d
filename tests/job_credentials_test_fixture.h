// Jobs whose workers prove to each other who they are.

#ifndef HAWSER_TESTS_JOB_CREDENTIALS_TEST_FIXTURE_H_
#define HAWSER_TESTS_JOB_CREDENTIALS_TEST_FIXTURE_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/status_matchers.h"
#include "gtest/gtest.h"
#include "launch/worker.h"
#include "net/test_credentials.h"
#include "rpc/function.h"
#include "rpc/function_registry.h"
#include "store/hash_store.h"

namespace hawser {

inline constexpr rpc::Function<int64_t(int64_t)> kTwice{"credentials.Twice"};

class JobCredentialsTest : public testing::Test {
 protected:
  JobCredentialsTest()
      : token_(authority_.Write("token", std::string(64, 'a'))) {
    EXPECT_THAT(registry_.Register(kTwice, [](int64_t x) { return 2 * x; }),
                async::IsOk());
  }

  // Of worker `rank`, with files of `issuer`, which meets others at store_.
  launch::WorkerOptions OptionsOf(int rank, net::TestAuthority& issuer,
                                  absl::Duration lifetime = absl::Hours(24)) {
    launch::WorkerOptions options;
    options.rank = rank;
    options.store = &store_;
    options.registry = &registry_;
    options.timeout = absl::Seconds(5);
    options.credentials = issuer.Issue(absl::StrCat("worker", rank), lifetime);
    options.credentials.token_path = token_;
    return options;
  }
  launch::WorkerOptions OptionsOf(int rank) {
    return OptionsOf(rank, authority_);
  }

  // A file with the certificates of both authorities.
  std::string BothAuthorities() {
    return authority_.Write("both.crt", authority_.authority().certificate +
                                            other_.authority().certificate);
  }

  // What a call of worker 0 by a worker with `options` ends with.
  absl::Status CallOfFirst(launch::WorkerOptions options) {
    auto guest = launch::Worker::Start(std::move(options));
    if (!guest.ok()) return guest.status();
    absl::Status status = (*guest)->agent().Sync("worker0", kTwice, 4).status();
    EXPECT_THAT((*guest)->Shutdown(/*graceful=*/false), async::IsOk());
    return status;
  }

  net::TestAuthority authority_;
  net::TestAuthority other_;
  const std::string token_;
  store::HashStore store_;
  rpc::FunctionRegistry registry_;
};

}  // namespace hawser

#endif  // HAWSER_TESTS_JOB_CREDENTIALS_TEST_FIXTURE_H_
