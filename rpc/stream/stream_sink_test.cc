#include "rpc/stream/stream_sink.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;

StreamSink MakeSink(size_t window) {
  return StreamSink(nullptr, WorkerInfo(), window);
}

void ExpectValue(const async::Future<StreamSink::Answer>& future,
                 const std::string& value) {
  ASSERT_TRUE(future.ready());
  ASSERT_THAT(future.result(), IsOk());
  ASSERT_TRUE(future.result()->item.has_value());
  EXPECT_EQ(future.result()->item->values, value);
}

TEST(StreamSinkTest, ValuesMatchRequestsInAnyOrder) {
  StreamSink sink = MakeSink(4);
  const auto first = sink.Next(0, 0);
  EXPECT_FALSE(first.ready());
  EXPECT_THAT(sink.Write({"a", {}}).Wait(), IsOk());
  ExpectValue(first, "a");
  EXPECT_THAT(sink.Write({"b", {}}).Wait(), IsOk());
  ExpectValue(sink.Next(1, 0), "b");
}

TEST(StreamSinkTest, WriterWaitsForAcknowledgedValues) {
  StreamSink sink = MakeSink(2);
  EXPECT_THAT(sink.Write({"a", {}}).Wait(), IsOk());
  const async::Future<void> room = sink.Write({"b", {}});
  EXPECT_FALSE(room.ready());
  EXPECT_THAT(sink.Write({"c", {}}).Wait(),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  ExpectValue(sink.Next(0, 0), "a");
  EXPECT_FALSE(room.ready());
  ExpectValue(sink.Next(1, 1), "b");
  ASSERT_TRUE(room.ready());
  EXPECT_THAT(room.result(), IsOk());
}

TEST(StreamSinkTest, RepeatedRequestGetsTheSameValueUntilItIsAcknowledged) {
  StreamSink sink = MakeSink(2);
  EXPECT_THAT(sink.Write({"a", {}}).Wait(), IsOk());
  ExpectValue(sink.Next(0, 0), "a");
  ExpectValue(sink.Next(0, 0), "a");
  const auto one = sink.Next(1, 1);
  const auto other = sink.Next(1, 1);
  EXPECT_THAT(sink.Next(0, 1).Wait(),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(sink.Next(3, 1).Wait(),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(sink.Write({"b", {}}).Wait(), IsOk());
  ExpectValue(one, "b");
  ExpectValue(other, "b");
}

TEST(StreamSinkTest, RequestsForOneValueAreBounded) {
  StreamSink sink = MakeSink(1);
  const auto first = sink.Next(0, 0);
  std::vector<async::Future<StreamSink::Answer>> others;
  for (int i = 0; i < 8; ++i) others.push_back(sink.Next(0, 0));
  EXPECT_THAT(first.Wait(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_FALSE(others.front().ready());
}

TEST(StreamSinkTest, EndFollowsTheWrittenValues) {
  StreamSink sink = MakeSink(4);
  EXPECT_THAT(sink.Write({"a", {}}).Wait(), IsOk());
  const auto beyond = sink.Next(1, 0);
  sink.End(absl::DataLossError("torn"));
  sink.End(absl::OkStatus());
  ExpectValue(sink.Next(0, 0), "a");
  for (const auto& future : {beyond, sink.Next(2, 0)}) {
    ASSERT_THAT(future.Wait(), IsOk());
    EXPECT_FALSE(future.result()->item.has_value());
    EXPECT_THAT(future.result()->end, StatusIs(absl::StatusCode::kDataLoss));
  }
  EXPECT_THAT(sink.Write({"b", {}}).Wait(),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST(StreamSinkTest, CancelEndsWriterAndRequests) {
  StreamSink sink = MakeSink(1);
  const async::Future<void> room = sink.Write({"a", {}});
  const auto request = MakeSink(1).Next(0, 0);
  EXPECT_FALSE(room.ready());
  sink.Cancel(absl::CancelledError("gone"));
  EXPECT_THAT(room.Wait(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_TRUE(sink.cancellation()->cancelled());
  EXPECT_THAT(sink.Write({"b", {}}).Wait(),
              StatusIs(absl::StatusCode::kCancelled));
  // Even for a value that was written but not sent.
  EXPECT_THAT(sink.Next(0, 0).Wait(), StatusIs(absl::StatusCode::kCancelled));
  // The sink is destroyed, so there will be no reply.
  EXPECT_THAT(request.Wait(), StatusIs(absl::StatusCode::kCancelled));
}

}  // namespace
}  // namespace hawser::rpc
