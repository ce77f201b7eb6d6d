#include "collectives/testing/conformance.h"

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/testing/status_matchers.h"
#include "collectives/gloo/backend.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "store/hash/store.h"

namespace hawser::collectives {
namespace {

using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

// On a machine each.
std::vector<std::unique_ptr<Backend>> MakeGlooBackends(int size) {
  store::HashStore store;
  std::vector<std::unique_ptr<Backend>> backends(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      auto backend =
          MakeGlooBackend(store, rank, size, absl::Seconds(60),
                          {.machine = absl::StrCat("machine ", rank)});
      ASSERT_TRUE(backend.ok()) << backend.status();
      backends[static_cast<size_t>(rank)] = *std::move(backend);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return backends;
}

TEST(GlooBackendTest, RanksThatDoNotJoinAreNamed) {
  store::HashStore store;
  EXPECT_THAT(MakeGlooBackend(store, 1, 4, absl::Milliseconds(50)).status(),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       HasSubstr("rank 0, 2, 3 have not joined")));
}

TEST(GlooBackendTest, WrongArgumentsAreRefused) {
  store::HashStore store;
  EXPECT_THAT(
      MakeGlooBackend(store, 0, 2, absl::Seconds(1),
                      {.machine = std::string(256, 'm')})
          .status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("256 bytes")));
  EXPECT_THAT(MakeGlooBackend(store, 4, 4, absl::Seconds(1)).status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(MakeGlooBackend(store, 0, 2, absl::Seconds(1),
                              {.interface = "no-such-interface",
                               .allow_insecure_network = true})
                  .status(),
              StatusIs(absl::StatusCode::kUnavailable));
  for (const GlooOptions& open :
       {GlooOptions{.host = "10.0.0.1"}, GlooOptions{.interface = "eth0"}}) {
    EXPECT_THAT(MakeGlooBackend(store, 0, 2, absl::Seconds(1), open).status(),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         HasSubstr("allow_insecure_network")));
  }
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Gloo, ConformanceTest,
                         testing::ValuesIn(ConformanceParams(MakeGlooBackends)),
                         ConformanceName);

}  // namespace hawser::collectives
