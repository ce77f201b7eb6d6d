#include "rpc/stream/stream.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "async/future.h"
#include "async/status_macros.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/errors/error_detail.h"
#include "rpc/grpc/transport.h"
#include "rpc/stream/register_stream.h"
#include "rpc/stream/stream_function.h"
#include "rpc/stream/stream_service.h"
#include "rpc/testing/agent_test_fixture.h"
#include "rpc/testing/transport_test_param.h"
#include "tensor/tensor.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;

inline constexpr StreamFunction<int64_t(int64_t)> kCount{"stream_test.Count"};
inline constexpr StreamFunction<int64_t()> kForever{"stream_test.Forever"};
inline constexpr Function<int64_t(int64_t)> kTwice{"stream_test.Twice"};

class StreamTest : public testing::TestWithParam<TransportParam> {
 protected:
  StreamTest() : job_(MakeTransportFactory(GetParam())) {}

  void SetUp() override {
    // Counts to `n`, and fails after that if it is negative.
    ASSERT_THAT(RegisterStream(job_.registry(), kCount,
                               [this](StreamWriter<int64_t> out,
                                      int64_t n) -> absl::Status {
                                 for (int64_t i = 0; i < std::abs(n); ++i) {
                                   RETURN_IF_ERROR(out.Write(i).Wait());
                                   written_ = i + 1;
                                 }
                                 if (n < 0)
                                   return absl::DataLossError("no more");
                                 return absl::OkStatus();
                               }),
                IsOk());
    ASSERT_THAT(RegisterStream(job_.registry(), kForever,
                               [this](StreamWriter<int64_t> out) {
                                 ++num_running_;
                                 absl::Status status;
                                 while (status.ok())
                                   status = out.Write(1).Wait();
                                 --num_running_;
                                 return status;
                               }),
                IsOk());
    ASSERT_THAT(
        job_.registry().Register(kTwice, [](int64_t x) { return 2 * x; }),
        IsOk());
  }

  // Generous, for overloaded machines.
  void StartAll(absl::Duration unreachable_limit = absl::Seconds(20)) {
    job_.StartAll(2, [&](int, AgentOptions& options) {
      options.liveness.unreachable_limit = unreachable_limit;
      options.services.push_back(std::make_unique<StreamService>());
    });
  }

  // Returns a stream whose function has started before its deadline, however
  // slow the machine is.
  StreamReader<int64_t> BeginForever(const StreamOptions& options) {
    while (true) {
      auto reader = Stream(job_.agent(0), "w1", options, kForever);
      EXPECT_THAT(reader, IsOk());
      if (reader->Next().Wait().ok()) return *std::move(reader);
    }
  }
  // Waits for the end of all functions without a natural end.
  void AwaitForever() {
    while (num_running_ > 0) std::this_thread::yield();
  }

  int64_t NumOpen(int rank) {
    return job_.agent(rank).service<StreamService>()->num_open();
  }

  // Declared before the job, whose functions use them.
  std::atomic<int64_t> written_{0};
  std::atomic<int> num_running_{0};
  TestJob job_;
};

INSTANTIATE_TEST_SUITE_P(All, StreamTest, testing::ValuesIn(kTransportParams),
                         TransportParamName());

TEST_P(StreamTest, ValuesArriveInOrderFollowedByTheEnd) {
  StartAll();
  for (const int window : {1, 4, 64}) {
    for (const int64_t count : {0, 1, 3, 200}) {
      auto reader =
          Stream(job_.agent(0), "w1", {.window = window}, kCount, count);
      ASSERT_THAT(reader, IsOk());
      for (int64_t i = 0; i < count; ++i) {
        ASSERT_THAT(reader->Next().Wait(), IsOkAndHolds(std::optional(i)));
      }
      EXPECT_THAT(reader->Next().Wait(), IsOkAndHolds(std::nullopt));
      EXPECT_THAT(reader->Next().Wait(), IsOkAndHolds(std::nullopt));
    }
  }
}

TEST_P(StreamTest, ConcurrentNextsCompleteInOrder) {
  StartAll();
  auto reader = Stream(job_.agent(0), "w1", kCount, 20);
  ASSERT_THAT(reader, IsOk());
  std::vector<async::Future<std::optional<int64_t>>> values;
  for (int i = 0; i < 25; ++i) values.push_back(reader->Next());
  for (int64_t i = 0; i < 25; ++i) {
    EXPECT_THAT(values[i].Wait(),
                IsOkAndHolds(i < 20 ? std::optional(i) : std::nullopt));
  }
}

TEST_P(StreamTest, ErrorOfTheFunctionFollowsTheValuesAndNamesTheWorker) {
  StartAll();
  auto reader = Stream(job_.agent(0), "w1", kCount, -2);
  ASSERT_THAT(reader, IsOk());
  EXPECT_THAT(reader->Next().Wait(), IsOkAndHolds(std::optional<int64_t>(0)));
  EXPECT_THAT(reader->Next().Wait(), IsOkAndHolds(std::optional<int64_t>(1)));
  const auto end = reader->Next().Wait();
  EXPECT_THAT(
      end, StatusIs(absl::StatusCode::kDataLoss, HasSubstr("'w1': no more")));
  const std::optional<ErrorDetail> detail = GetErrorDetail(end.status());
  ASSERT_TRUE(detail.has_value());
  EXPECT_EQ(detail->worker, "w1");
  EXPECT_EQ(detail->incarnation, job_.agent(1).info().incarnation);
  EXPECT_FALSE(detail->maybe_applied);
}

TEST_P(StreamTest, ReaderLimitsTheWriter) {
  StartAll();
  auto reader =
      Stream(job_.agent(0), "w1", {.window = 2}, kCount, int64_t{1000});
  ASSERT_THAT(reader, IsOk());
  EXPECT_THAT(reader->Next().Wait(), IsOk());
  // One value was read, two more were requested, and two fit in the window.
  EXPECT_THAT(job_.agent(0).Sync("w1", kTwice, 1), IsOkAndHolds(2));
  EXPECT_LE(written_, 5);
}

TEST_P(StreamTest, CancelledOrDroppedReaderEndsTheFunction) {
  StartAll();
  {
    auto reader = Stream(job_.agent(0), "w1", kForever);
    ASSERT_THAT(reader, IsOk());
    EXPECT_THAT(reader->Next().Wait(), IsOkAndHolds(std::optional<int64_t>(1)));
    auto late = reader->Next();
    reader->Cancel();
    reader->Cancel();
    // Either may happen first.
    if (!late.Wait().ok()) {
      EXPECT_THAT(late.Wait(), StatusIs(absl::StatusCode::kCancelled));
    }
    EXPECT_THAT(reader->Next().Wait(), StatusIs(absl::StatusCode::kCancelled));
  }
  AwaitForever();
}

TEST_P(StreamTest, DeadlineEndsBothSides) {
  StartAll();
  auto reader = BeginForever({.timeout = absl::Milliseconds(150)});
  absl::Status status;
  while (status.ok()) status = reader.Next().Wait().status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kDeadlineExceeded));
  AwaitForever();
}

// Even if only the request for a value failed, which was never sent.
TEST_P(StreamTest, ErrorsAfterTheStartAreMaybeApplied) {
  StartAll();
  auto reader = BeginForever({.timeout = absl::Milliseconds(150), .window = 1});
  AwaitForever();
  absl::Status status;
  while (status.ok()) status = reader.Next().Wait().status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kDeadlineExceeded));
  const std::optional<ErrorDetail> detail = GetErrorDetail(status);
  ASSERT_TRUE(detail.has_value());
  EXPECT_EQ(detail->worker, "w1");
  EXPECT_TRUE(detail->maybe_applied);
}

TEST_P(StreamTest, StoppingTheWriterEndsTheStreamWithItsName) {
  StartAll();
  auto reader = Stream(job_.agent(0), "w1", kForever);
  ASSERT_THAT(reader, IsOk());
  EXPECT_THAT(reader->Next().Wait(), IsOk());
  job_.owned(1)->Shutdown(/*graceful=*/false).IgnoreError();
  AwaitForever();
  absl::Status status;
  while (status.ok()) status = reader->Next().Wait().status();
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("w1")));
}

TEST_P(StreamTest, InvalidCallsAreRejectedLikeThoseOfFunctions) {
  StartAll();
  constexpr StreamFunction<int64_t()> kAbsent{"stream_test.Absent"};
  constexpr StreamFunction<std::string(int64_t)> kOther{"stream_test.Count"};
  constexpr Function<int64_t(int64_t)> kNoStream{"stream_test.Count"};
  constexpr StreamFunction<int64_t(int64_t)> kNoFunction{"stream_test.Twice"};
  auto absent = Stream(job_.agent(0), "w1", kAbsent);
  ASSERT_THAT(absent, IsOk());
  EXPECT_THAT(absent->Next().Wait(),
              StatusIs(absl::StatusCode::kUnimplemented));
  auto other = Stream(job_.agent(0), "w1", kOther, 1);
  ASSERT_THAT(other, IsOk());
  EXPECT_THAT(other->Next().Wait(), StatusIs(absl::StatusCode::kInvalidArgument,
                                             HasSubstr("stream int64(int64)")));
  EXPECT_THAT(job_.agent(0).Sync("w1", kNoStream, 1),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("stream int64(int64)")));
  auto unary = Stream(job_.agent(0), "w1", kNoFunction, 1);
  ASSERT_THAT(unary, IsOk());
  EXPECT_THAT(unary->Next().Wait(),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Stream(job_.agent(0), "nobody", kCount, 1),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(Stream(job_.agent(0), "w1", {.window = 65}, kCount, 1),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_P(StreamTest, EndedStreamsAreRemovedAndShutdownIsClean) {
  StartAll();
  {
    auto reader = Stream(job_.agent(0), "w1", kCount, 3);
    ASSERT_THAT(reader, IsOk());
    while (reader->Next().Wait()->has_value()) {
    }
  }
  for (const absl::Status& status : job_.ShutdownAll()) {
    EXPECT_THAT(status, IsOk());
  }
  EXPECT_EQ(NumOpen(1), 0);
}

TEST_P(StreamTest, TensorAboveTheMessageLimitIsSentInParts) {
  if (GetParam() == TransportParam::kInproc) {
    GTEST_SKIP() << "the in-process transport has no limit";
  }
  constexpr size_t kLimit = size_t{64} << 10;
  TestJob job([] {
    return std::make_unique<GrpcTransport>(GrpcTransportOptions{
        .max_message_bytes = kLimit,
        .same_host = GetParam() == TransportParam::kSameHost});
  });
  const Tensor table =
      Tensor::Arange(int64_t{64} * 4096).Reshape({64, 4096}).value();
  constexpr StreamFunction<Tensor()> kPull{"stream_test.Pull"};
  constexpr Function<Tensor()> kWhole{"stream_test.Whole"};
  ASSERT_THAT(RegisterStream(job.registry(), kPull,
                             [&](StreamWriter<Tensor> out) -> absl::Status {
                               for (int64_t row = 0; row < 64; ++row) {
                                 ASSIGN_OR_RETURN(const Tensor part,
                                                  table.Slice(0, row, row + 1));
                                 RETURN_IF_ERROR(out.Write(part).Wait());
                               }
                               return absl::OkStatus();
                             }),
              IsOk());
  ASSERT_THAT(job.registry().Register(kWhole, [&] { return table; }), IsOk());
  job.StartAll(2, [](int, AgentOptions& options) {
    options.services.push_back(std::make_unique<StreamService>());
  });
  ASSERT_GT(table.byte_size(), kLimit);
  EXPECT_THAT(job.agent(0).Sync("w1", kWhole),
              StatusIs(absl::StatusCode::kResourceExhausted));
  auto reader = Stream(job.agent(0), "w1", kPull);
  ASSERT_THAT(reader, IsOk());
  std::vector<float> got;
  while (true) {
    auto row = reader->Next().Wait();
    ASSERT_THAT(row, IsOk());
    if (!row->has_value()) break;
    const std::vector<float> values = (*row)->ToVector<float>();
    got.insert(got.end(), values.begin(), values.end());
  }
  EXPECT_EQ(got, table.ToVector<float>());
}

TEST_P(StreamTest, LostReaderEndsTheFunction) {
  if (GetParam() != TransportParam::kInproc) {
    GTEST_SKIP() << "faults are made by the in-process transport";
  }
  StartAll(/*unreachable_limit=*/absl::Milliseconds(300));
  auto reader = Stream(job_.agent(0), "w1", {.timeout = kNoTimeout}, kForever);
  ASSERT_THAT(reader, IsOk());
  EXPECT_THAT(reader->Next().Wait(), IsOk());
  job_.network().Crash(job_.agent(0).info().address);
  AwaitForever();
  EXPECT_EQ(NumOpen(1), 0);
}

TEST_P(StreamTest, LostAndRepeatedMessagesChangeNothing) {
  if (GetParam() != TransportParam::kInproc) {
    GTEST_SKIP() << "faults are made by the in-process transport";
  }
  StartAll();
  job_.network().SetMethodFaults("/hawser.v1.StreamService/Next",
                                 {.duplicate_request = 0.5,
                                  .duplicate_reply = 0.5,
                                  .max_delay = absl::Milliseconds(2)});
  auto reader = Stream(job_.agent(0), "w1", kCount, 100);
  ASSERT_THAT(reader, IsOk());
  for (int64_t i = 0; i < 100; ++i) {
    ASSERT_THAT(reader->Next().Wait(), IsOkAndHolds(std::optional(i)));
  }
  EXPECT_THAT(reader->Next().Wait(), IsOkAndHolds(std::nullopt));
}

}  // namespace
}  // namespace hawser::rpc
