// Tables whose callers send more than their servers take.

#include <cstdint>
#include <memory>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "async/future.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps/storage/consistency.h"
#include "ps/storage/push_observer.h"
#include "ps/storage/table_spec.h"
#include "ps/table.h"
#include "ps/table_service.h"
#include "ps/worker_clock.h"
#include "rpc/agent/agent.h"
#include "rpc/testing/agent_test_fixture.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace hawser::ps {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;

constexpr int64_t kRows = 100;
// Of a request of kRows rows of one weight.
constexpr int64_t kRequestBytes = kRows * (8 + 4);

// Worker 0 uses tables on worker 1, which holds pushes back until Release.
class BackPressureTest : public testing::Test {
 protected:
  void TearDown() override {
    Release();
    job_.StopAll();
  }

  void Start(int64_t max_bytes, absl::Duration timeout = absl::Seconds(60)) {
    job_.StartAll(2, [&](int rank, rpc::AgentOptions& options) {
      TableServiceOptions tables;
      tables.max_bytes_under_way = max_bytes;
      if (rank == 1) {
        tables.push_observer = [this](PushStage stage) {
          if (stage == PushStage::kReceived) {
            released_.WaitForNotification();
          }
        };
      }
      options.default_timeout = timeout;
      options.services.push_back(
          std::make_unique<TableService>(std::move(tables)));
    });
  }

  Table Create(Consistency consistency = Consistency::Asynchronous()) {
    const auto table = Table::Create(job_.agent(0),
                                     {.name = "t",
                                      .width = 1,
                                      .rule = {"SGD", {{"lr", 1}}},
                                      .consistency = consistency},
                                     {"w1"});
    EXPECT_THAT(table, IsOk());
    return *table;
  }
  static async::Future<void> Push(const Table& table) {
    return table.Push(Tensor::Arange(kRows, {.dtype = tensor::DType::kI64}),
                      Tensor::Full({kRows, 1}, -1));
  }
  static async::Future<Tensor> Pull(const Table& table) {
    return table.Pull(Tensor::Arange(kRows, {.dtype = tensor::DType::kI64}));
  }

  int64_t BytesUnderWay() {
    return job_.agent(0).service<TableService>()->DebugNumbers().at(
        "bytes_under_way");
  }
  void Release() {
    if (!released_.HasBeenNotified()) released_.Notify();
  }

  rpc::TestJob job_;
  absl::Notification released_;
};

TEST_F(BackPressureTest, CallsBlockAboveTheLimit) {
  Start(2 * kRequestBytes);
  const Table table = Create();
  const auto first = Push(table);
  const auto second = Push(table);
  EXPECT_EQ(BytesUnderWay(), 2 * kRequestBytes);
  absl::Notification returned;
  std::thread caller([&] {
    const auto third = Push(table);
    returned.Notify();
    EXPECT_THAT(third.Wait(), IsOk());
  });
  EXPECT_FALSE(
      returned.WaitForNotificationWithTimeout(absl::Milliseconds(100)));
  EXPECT_EQ(BytesUnderWay(), 2 * kRequestBytes);
  Release();
  EXPECT_THAT(first.Wait(), IsOk());
  EXPECT_THAT(second.Wait(), IsOk());
  caller.join();
  const auto rows = Pull(table).Wait();
  ASSERT_THAT(rows, IsOk());
  EXPECT_EQ(rows->ToVector<float>()[0], 3);
  EXPECT_EQ(BytesUnderWay(), 0);
}

TEST_F(BackPressureTest, ACallThatWaitsTooLongFails) {
  Start(kRequestBytes, absl::Milliseconds(300));
  const Table table = Create();
  const auto first = Push(table);
  // Either the first push times out just before, or this one waits in vain.
  const absl::Status pulled = Pull(table).Wait().status();
  if (!pulled.ok()) {
    EXPECT_THAT(pulled, StatusIs(absl::StatusCode::kResourceExhausted,
                                 HasSubstr("max_bytes_under_way")));
  }
  EXPECT_THAT(first.Wait(), StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_EQ(BytesUnderWay(), 0);
}

// A worker that waited here could keep others from their next clock.
TEST_F(BackPressureTest, RequestsWithClocksDoNotCount) {
  Start(1);
  const Table table = Create(Consistency::Synchronous());
  auto clock = WorkerClock::Join({table});
  ASSERT_THAT(clock, IsOk());
  const auto first = Push(table);
  const auto second = Push(table);
  EXPECT_EQ(BytesUnderWay(), 0);
  ASSERT_THAT(clock->Advance(), IsOk());
  Release();
  EXPECT_THAT(first.Wait(), IsOk());
  EXPECT_THAT(second.Wait(), IsOk());
}

TEST(TableServiceOptionsTest, TheLimitIsAtLeastOne) {
  rpc::TestJob job;
  rpc::AgentOptions options = job.Options(0, 1);
  options.services.push_back(std::make_unique<TableService>(
      TableServiceOptions{.max_bytes_under_way = 0}));
  EXPECT_THAT(rpc::Agent::Start(std::move(options)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("max_bytes_under_way is 0")));
}

}  // namespace
}  // namespace hawser::ps
