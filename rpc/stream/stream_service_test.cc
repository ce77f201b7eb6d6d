// The writing end of streams, behind a host that the test controls.

#include "rpc/stream/stream_service.h"

#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/future.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/stream.pb.h"
#include "rpc/functions/method.h"
#include "rpc/stream/register_stream.h"
#include "rpc/stream/stream_function.h"
#include "rpc/stream/stream_methods.h"
#include "rpc/testing/fakes/fake_service_host.h"
#include "rpc/transport/cancellation.h"
#include "rpc/wire/decoder.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;

constexpr StreamFunction<int64_t()> kOneTwo{"test.OneTwo"};
constexpr uint64_t kStream = 5;

class StreamServiceTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(RegisterStream(host_.registry(), kOneTwo,
                               [this](StreamWriter<int64_t> writer) {
                                 EXPECT_TRUE(writer.Write(1).ready());
                                 EXPECT_TRUE(writer.Write(2).ready());
                                 return end_.emplace_back().future();
                               }),
                IsOk());
    ASSERT_THAT(service_.Start(host_), IsOk());
  }
  void TearDown() override { service_.Interrupt(); }

  static v1::StreamOpenRequest OpenRequest() {
    v1::StreamOpenRequest request;
    request.set_function(std::string(kOneTwo.name()));
    request.set_signature(kOneTwo.Signature());
    request.set_stream(kStream);
    request.set_window(4);
    return request;
  }
  async::Future<Message<v1::StreamOpenReply>> Open(const WorkerInfo& reader) {
    return host_.Receive(kStreamOpenMethod, reader, OpenRequest());
  }
  async::Future<Message<v1::StreamNextReply>> Next(const WorkerInfo& reader,
                                                   uint64_t sequence) {
    v1::StreamNextRequest request;
    request.set_stream(kStream);
    request.set_sequence(sequence);
    return host_.Receive(kStreamNextMethod, reader, request);
  }

  // The streams' functions end with these.
  std::deque<async::Promise<void>> end_;
  const WorkerInfo reader_ = FakeServiceHost::MakeWorker(1);
  FakeServiceHost host_;
  StreamService service_{{.non_member_limit = absl::Seconds(60)}};
};

TEST_F(StreamServiceTest, ValuesBelongToTheReaderThatOpenedTheStream) {
  ASSERT_THAT(Open(reader_).Wait(), IsOk());
  EXPECT_EQ(service_.num_open(), 1);
  EXPECT_THAT(Next(reader_, 0).Wait(), IsOk());
  EXPECT_THAT(Next(FakeServiceHost::MakeWorker(2), 1).Wait(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("stream 5")));
}

// A plain call of a peer with the signature of the stream.
TEST_F(StreamServiceTest, FunctionDoesNotRunWithoutAStream) {
  const auto function =
      host_.FindFunction({}, kOneTwo.name(), kOneTwo.Signature());
  ASSERT_THAT(function, IsOk());
  Decoder arguments(nullptr, &reader_, "", {});
  EXPECT_THAT(host_.Invoke(**function, arguments).Wait(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("writes a stream")));
  EXPECT_TRUE(end_.empty());
}

TEST_F(StreamServiceTest, ReaderWithASlowClockLearnsThatTheDeadlineHasPassed) {
  ASSERT_THAT(
      host_
          .Receive(kStreamOpenMethod,
                   MethodCall{.peer = reader_,
                              .deadline = async::AddDelay(host_.clock().Now(),
                                                          absl::Seconds(1)),
                              .cancellation = std::make_shared<Cancellation>()},
                   OpenRequest())
          .Wait(),
      IsOk());
  EXPECT_THAT(Next(reader_, 0).Wait(), IsOk());
  host_.clock().AdvanceBy(absl::Minutes(1));
  EXPECT_THAT(Next(reader_, 1).Wait(),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_EQ(service_.num_open(), 0);
}

TEST_F(StreamServiceTest, StreamOfAReaderThatIsLostAlreadyIsClosedAtOnce) {
  host_.LoseWorker(reader_);
  ASSERT_THAT(Open(reader_).Wait(), IsOk());
  EXPECT_EQ(service_.num_open(), 0);
}

TEST_F(StreamServiceTest, SilentReaderKeepsItsStreamOnlyAsAMember) {
  host_.AddWorker(reader_);
  ASSERT_THAT(Open(reader_).Wait(), IsOk());
  ASSERT_THAT(Open(FakeServiceHost::MakeWorker(2)).Wait(), IsOk());
  EXPECT_EQ(service_.num_open(), 2);
  host_.clock().AdvanceBy(absl::Seconds(91));
  EXPECT_EQ(service_.num_open(), 1);
  EXPECT_THAT(Next(reader_, 0).Wait(), IsOk());
}

}  // namespace
}  // namespace hawser::rpc
