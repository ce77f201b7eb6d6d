// Fetches that end before the value is created, at both ends, in simulated
// time.

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/future.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/agent/agent.h"
#include "rpc/errors/error_detail.h"
#include "rpc/functions/function.h"
#include "rpc/identity/call_options.h"
#include "rpc/testing/cluster_simulation.h"
#include "rref/access/locked_value.h"
#include "rref/rref.h"
#include "rref/rref_service.h"

namespace hawser::rref {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;

inline constexpr rpc::Function<int64_t()> kGated{"fetch_timeout_test.Gated"};
constexpr absl::Duration kTimeout = absl::Seconds(5);
constexpr absl::Duration kDefaultTimeout = absl::Seconds(10);
constexpr absl::Duration kMoment = absl::Seconds(1);

class FetchTimeoutTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(
        job_.registry().Register(kGated, [this] { return gate_.future(); }),
        IsOk());
    job_.StartTogether();
    ASSERT_EQ(job_.failure(), "");
  }

  // A reference of w0 to a value that w`owner` creates when the gate opens.
  RRef<int64_t> Make(int owner) {
    auto rref = Remote(*job_.agent(0), rpc::WorkerId(owner),
                       {.timeout = rpc::kNoTimeout}, kGated);
    EXPECT_THAT(rref, IsOk());
    job_.Advance(kMoment);
    return *std::move(rref);
  }

  static absl::StatusOr<int64_t> Now(const async::Future<int64_t>& future) {
    if (!future.ready()) return absl::InternalError("not complete");
    return future.Wait();
  }

  async::Promise<int64_t> gate_;
  rpc::ClusterSimulation job_{
      /*seed=*/1,
      {.num_workers = 2, .group = true, .configure = [](rpc::AgentOptions& o) {
         o.default_timeout = kDefaultTimeout;
         o.services.push_back(std::make_unique<RRefService>());
       }}};
};

TEST_F(FetchTimeoutTest, FetchAtTheOwnerEndsAtItsTimeout) {
  const RRef<int64_t> rref = Make(0);
  ASSERT_TRUE(rref.is_owner());
  const async::Future<int64_t> timed = rref.ToHereAsync(kTimeout);
  const async::Future<int64_t> defaulted = rref.ToHereAsync();
  const async::Future<int64_t> endless = rref.ToHereAsync(rpc::kNoTimeout);
  job_.Advance(kTimeout - kMoment);
  EXPECT_FALSE(timed.ready());
  job_.Advance(2 * kMoment);
  const absl::Status error = Now(timed).status();
  EXPECT_THAT(error, StatusIs(absl::StatusCode::kDeadlineExceeded,
                              HasSubstr(rref.id().ToString())));
  const auto detail = rpc::GetErrorDetail(error);
  ASSERT_TRUE(detail.has_value()) << error;
  EXPECT_EQ(detail->worker, "w0");
  EXPECT_FALSE(defaulted.ready());
  job_.Advance(kDefaultTimeout - kTimeout);
  EXPECT_THAT(Now(defaulted), StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_FALSE(endless.ready());
  // The value is still created.
  gate_.Set(7);
  job_.Advance(kMoment);
  EXPECT_THAT(Now(endless), IsOkAndHolds(7));
  EXPECT_THAT(Now(rref.ToHereAsync(kTimeout)), IsOkAndHolds(7));
}

TEST_F(FetchTimeoutTest, FetchAtTheOwnerGetsAValueCreatedInTime) {
  const RRef<int64_t> rref = Make(0);
  const async::Future<int64_t> fetch = rref.ToHereAsync(kTimeout);
  job_.Advance(kTimeout - kMoment);
  gate_.Set(7);
  job_.Advance(2 * kMoment);
  EXPECT_THAT(Now(fetch), IsOkAndHolds(7));
}

TEST_F(FetchTimeoutTest, FetchOfALockedValueEndsAtItsTimeout) {
  RRef<int64_t> owned = Make(0);
  gate_.Set(7);
  job_.Advance(kMoment);
  std::optional<LockedValue<int64_t>> locked;
  {
    absl::StatusOr<LockedValue<int64_t>> lock = owned.Lock();
    ASSERT_THAT(lock, IsOk());
    locked = *std::move(lock);
  }
  const async::Future<int64_t> timed = owned.ToHereAsync(kTimeout);
  const async::Future<int64_t> endless = owned.ToHereAsync(rpc::kNoTimeout);
  job_.Advance(kTimeout - kMoment);
  EXPECT_FALSE(timed.ready());
  job_.Advance(2 * kMoment);
  EXPECT_THAT(Now(timed), StatusIs(absl::StatusCode::kDeadlineExceeded,
                                   HasSubstr("in use")));
  EXPECT_FALSE(endless.ready());
  locked.reset();
  EXPECT_THAT(Now(endless), IsOkAndHolds(7));
  EXPECT_THAT(owned.Lock(), IsOk());
}

TEST_F(FetchTimeoutTest, NegativeTimeoutIsRefusedAtBothEnds) {
  for (const int owner : {0, 1}) {
    const RRef<int64_t> rref = Make(owner);
    EXPECT_THAT(
        Now(rref.ToHereAsync(-kTimeout)),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("negative")));
  }
}

TEST_F(FetchTimeoutTest, OwnerStopsServingAFetchThatHasEnded) {
  const RRef<int64_t> rref = Make(1);
  const int64_t serving = job_.agent(1)->num_server_calls();
  const async::Future<int64_t> fetch = rref.ToHereAsync(kTimeout);
  job_.Advance(kMoment);
  EXPECT_EQ(job_.agent(1)->num_server_calls(), serving + 1);
  job_.Advance(kTimeout);
  EXPECT_THAT(Now(fetch), StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_EQ(job_.agent(1)->num_server_calls(), serving);
  gate_.Set(7);
  const async::Future<int64_t> later = rref.ToHereAsync(kTimeout);
  job_.Advance(kMoment);
  EXPECT_THAT(Now(later), IsOkAndHolds(7));
}

}  // namespace
}  // namespace hawser::rref
