// F8: requests and replies that are lost, come twice or late.

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "async/future.h"
#include "async/mutex.h"
#include "async/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/agent.h"
#include "rpc/agent_test_fixture.h"
#include "rpc/error_detail.h"
#include "rpc/function.h"
#include "rref/rref.h"
#include "rref/rref_service.h"

namespace hawser::tests {
namespace {

using ::hawser::async::IsOk;

#ifdef HAWSER_FAULTS_NIGHTLY
constexpr int kRounds = 200;
#else
constexpr int kRounds = 5;
#endif
constexpr int kCallsPerRound = 200;

constexpr rpc::Function<int64_t(int64_t)> kApply{"messages.Apply"};

// Which calls ran, and how often.
class Ledger {
 public:
  void Add(int64_t id) {
    async::MutexLock lock(&mutex_);
    ++counts_[id];
  }
  std::map<int64_t, int> counts() {
    async::MutexLock lock(&mutex_);
    return counts_;
  }

 private:
  async::Mutex mutex_;
  std::map<int64_t, int> counts_ ABSL_GUARDED_BY(mutex_);
};

class MessageFaultsTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(job_.registry().Register(kApply,
                                         [this](int64_t id) {
                                           ledger_.Add(id);
                                           return id;
                                         }),
                IsOk());
    job_.StartAll(2, [](int, rpc::AgentOptions& options) {
      options.services.push_back(std::make_unique<rref::RRefService>());
    });
    // On every method, those of the framework too.
    job_.network().SetFaults({.drop_request = 0.25,
                              .drop_reply = 0.25,
                              .duplicate_request = 0.25,
                              .duplicate_reply = 0.10,
                              .max_delay = absl::Milliseconds(20)});
  }

  void TearDown() override { job_.network().SetFaults({}); }

  // No call ran twice; each that succeeded ran; each that surely did not run
  // did not.
  void ExpectAtMostOnce(const std::map<int64_t, absl::Status>& results) {
    const std::map<int64_t, int> counts = ledger_.counts();
    for (const auto& [id, count] : counts) {
      EXPECT_EQ(count, 1) << "call " << id;
      EXPECT_TRUE(results.contains(id)) << "call " << id << " was not made";
    }
    int succeeded = 0;
    int failed = 0;
    for (const auto& [id, status] : results) {
      if (status.ok()) {
        ++succeeded;
        EXPECT_TRUE(counts.contains(id)) << "call " << id << " did not run";
        continue;
      }
      ++failed;
      const auto detail = rpc::GetErrorDetail(status);
      ASSERT_TRUE(detail.has_value()) << status;
      EXPECT_TRUE(detail->maybe_applied || !counts.contains(id)) << status;
    }
    // The faults happened, and not only they.
    EXPECT_GT(succeeded, 0);
    EXPECT_GT(failed, 0);
  }

  Ledger ledger_;
  rpc::TestJob job_;
};

TEST_F(MessageFaultsTest, F8UserCallsRunAtMostOnce) {
  std::map<int64_t, absl::Status> results;
  int64_t last_id = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<std::pair<int64_t, async::Future<int64_t>>> calls;
    for (int i = 0; i < kCallsPerRound; ++i) {
      const int64_t id = ++last_id;
      calls.emplace_back(
          id, job_.agent(i % 2).Async(rpc::WorkerId(1 - i % 2),
                                      {.timeout = absl::Milliseconds(300)},
                                      kApply, id));
    }
    for (auto& [id, call] : calls) results[id] = call.Wait().status();
  }
  ExpectAtMostOnce(results);
}

TEST_F(MessageFaultsTest, F8ReferencesAreMadeAtMostOnceAndGiveTheirValue) {
  std::map<int64_t, absl::Status> results;
  int64_t last_id = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<std::pair<int64_t, rref::RRef<int64_t>>> made;
    for (int i = 0; i < kCallsPerRound / 20; ++i) {
      const int64_t id = ++last_id;
      auto reference = rref::Remote(
          job_.agent(0), "w1",
          rpc::CallOptions{.timeout = absl::Milliseconds(300)}, kApply, id);
      ASSERT_THAT(reference, IsOk());
      made.emplace_back(id, *std::move(reference));
    }
    for (auto& [id, reference] : made) {
      results[id] = reference.WhenConfirmed().Wait();
      if (!results[id].ok()) continue;
      // Reading may be tried as often as one likes.
      absl::StatusOr<int64_t> value;
      do {
        value = reference.ToHere(absl::Milliseconds(100));
      } while (absl::IsDeadlineExceeded(value.status()));
      EXPECT_THAT(value, async::IsOkAndHolds(id));
    }
  }
  ExpectAtMostOnce(results);
}

}  // namespace
}  // namespace hawser::tests
