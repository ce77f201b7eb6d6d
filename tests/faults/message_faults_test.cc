// Tests of F8: requests and replies that are lost, duplicated or late.

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
#include "async/status_macros.h"
#include "async/testing/nightly.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/agent/agent.h"
#include "rpc/errors/error_detail.h"
#include "rpc/functions/function.h"
#include "rpc/stream/register_stream.h"
#include "rpc/stream/stream.h"
#include "rpc/stream/stream_function.h"
#include "rpc/stream/stream_service.h"
#include "rpc/testing/agent_test_fixture.h"
#include "rref/rref.h"
#include "rref/rref_service.h"

namespace hawser::tests {
namespace {

using ::hawser::async::IsOk;

const int kRounds = async::NightlyOr(200, 5);
constexpr int kCallsPerRound = 200;

constexpr rpc::Function<int64_t(int64_t)> kApply{"messages.Apply"};
// Writes a few values: pairs of the id and the number of previous values.
constexpr rpc::StreamFunction<std::pair<int64_t, int64_t>(int64_t)> kApplyMany{
    "messages.ApplyMany"};
constexpr int64_t kValuesOfMany = 3;

// Counter of executions by call.
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
    ASSERT_THAT(rpc::RegisterStream(
                    job_.registry(), kApplyMany,
                    [this](rpc::StreamWriter<std::pair<int64_t, int64_t>> out,
                           int64_t id) -> absl::Status {
                      ledger_.Add(id);
                      for (int64_t i = 0; i < kValuesOfMany; ++i) {
                        RETURN_IF_ERROR(out.Write({id, i}).Wait());
                      }
                      return absl::OkStatus();
                    }),
                IsOk());
    job_.StartAll(2, [](int, rpc::AgentOptions& options) {
      options.services.push_back(std::make_unique<rpc::StreamService>());
      options.services.push_back(std::make_unique<rref::RRefService>());
    });
    // Faults of all methods, including those of the framework.
    job_.network().SetFaults({.drop_request = 0.25,
                              .drop_reply = 0.25,
                              .duplicate_request = 0.25,
                              .duplicate_reply = 0.10,
                              .max_delay = absl::Milliseconds(20)});
  }

  void TearDown() override { job_.network().SetFaults({}); }

  // Expects that no call ran twice, that all calls that succeeded ran, and that
  // no call with an error that excludes execution ran.
  void ExpectAtMostOnce(const std::map<int64_t, absl::Status>& results) {
    const std::map<int64_t, int> counts = ledger_.counts();
    for (const auto& [id, count] : counts) {
      EXPECT_EQ(count, 1) << "call " << id;
      EXPECT_TRUE(results.contains(id)) << "call " << id << " was not sent";
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
    // Both outcomes occurred.
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

TEST_F(MessageFaultsTest, F8ReferencesAreCreatedAtMostOnceAndReadable) {
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
      // Reads may be retried without a limit.
      absl::StatusOr<int64_t> value;
      do {
        value = reference.ToHere(absl::Milliseconds(100));
      } while (absl::IsDeadlineExceeded(value.status()));
      EXPECT_THAT(value, async::IsOkAndHolds(id));
    }
  }
  ExpectAtMostOnce(results);
}

// A stream fails if one of its messages is lost. Its values arrive once and in
// order.
TEST_F(MessageFaultsTest, F8StreamsRunAtMostOnceAndDeliverValuesOnce) {
  struct Open {
    int64_t id;
    rpc::StreamReader<std::pair<int64_t, int64_t>> reader;
  };
  std::map<int64_t, absl::Status> results;
  int64_t last_id = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<Open> streams;
    for (int i = 0; i < kCallsPerRound; ++i) {
      const int64_t id = ++last_id;
      auto reader =
          rpc::Stream(job_.agent(i % 2), rpc::WorkerId(1 - i % 2),
                      {.timeout = absl::Milliseconds(300)}, kApplyMany, id);
      ASSERT_THAT(reader, IsOk());
      streams.push_back({id, *std::move(reader)});
    }
    for (Open& stream : streams) {
      int64_t count = 0;
      while (true) {
        const auto value = stream.reader.Next().Wait();
        results[stream.id] = value.status();
        if (!value.ok() || !value->has_value()) break;
        EXPECT_EQ(**value, std::pair(stream.id, count));
        ++count;
      }
      if (results[stream.id].ok()) {
        EXPECT_EQ(count, kValuesOfMany);
      }
    }
  }
  ExpectAtMostOnce(results);
}

}  // namespace
}  // namespace hawser::tests
