// Tests of streams whose readers are not members of the job.

#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "async/future.h"
#include "async/mutex.h"
#include "async/testing/simulated_clock.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/stream.pb.h"
#include "rpc/identity/worker_info.h"
#include "rpc/stream/register_stream.h"
#include "rpc/stream/stream.h"
#include "rpc/stream/stream_function.h"
#include "rpc/stream/stream_service.h"
#include "rpc/stream/stream_sink.h"
#include "rpc/testing/agent_test_fixture.h"
#include "rpc/testing/raw_client.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;

inline constexpr StreamFunction<int64_t()> kForever{"stream_test.Forever"};
inline constexpr StreamFunction<int64_t()> kSlow{"stream_test.Slow"};

// Readers about which only their own claims are known.
class StreamOfNonMembersTest : public testing::Test {
 protected:
  void Start(const StreamLimits& limits) {
    ASSERT_THAT(RegisterStream(job_.registry(), kForever,
                               [](StreamWriter<int64_t> out) {
                                 absl::Status status;
                                 while (status.ok())
                                   status = out.Write(1).Wait();
                                 return status;
                               }),
                IsOk());
    ASSERT_THAT(RegisterStream(job_.registry(), kSlow,
                               [this](StreamWriter<int64_t>) {
                                 async::MutexLock lock(&mutex_);
                                 sink_ = *internal::current_stream.get();
                                 return ended_.future();
                               }),
                IsOk());
    job_.StartOne(0, [&](int, AgentOptions& options) {
      options.clock = &clock_;
      options.services.push_back(std::make_unique<StreamService>(limits));
    });
  }
  absl::Status Open(Incarnation reader, uint64_t stream,
                    const StreamFunction<int64_t()>& function = kForever) {
    v1::StreamOpenRequest request;
    request.set_function(std::string(function.name()));
    request.set_signature(function.Signature());
    request.set_stream(stream);
    request.set_window(1);
    return Call(reader, "/hawser.v1.StreamService/Open",
                request.SerializeAsString());
  }
  absl::Status Next(Incarnation reader, uint64_t stream) {
    v1::StreamNextRequest request;
    request.set_stream(stream);
    return Call(reader, "/hawser.v1.StreamService/Next",
                request.SerializeAsString());
  }
  absl::Status Close(Incarnation reader, uint64_t stream) {
    v1::StreamCloseRequest request;
    request.set_stream(stream);
    return Call(reader, "/hawser.v1.StreamService/Close",
                request.SerializeAsString());
  }
  absl::Status Call(Incarnation reader, std::string_view path,
                    std::string body) {
    return caller_
        .Call({.name = name_,
               .id = WorkerId(),
               .incarnation = reader,
               .address = ""},
              job_.agent(0).info(), path, std::move(body))
        .status();
  }
  int64_t NumOpen() {
    return job_.agent(0).service<StreamService>()->num_open();
  }

  // Whether a request for a value of kSlow is waiting.
  bool Awaited() {
    async::MutexLock lock(&mutex_);
    return sink_ != nullptr && sink_->awaited();
  }

  // Of the reader.
  std::string name_ = "non_member";
  async::Promise<void> ended_;
  async::Mutex mutex_;
  std::shared_ptr<StreamSink> sink_ ABSL_GUARDED_BY(mutex_);
  async::SimulatedClock clock_;
  TestJob job_;
  RawClient caller_{job_.network().NewTransport()};
};

TEST_F(StreamOfNonMembersTest, LimitAppliesToAllForgedIncarnationsOfAPeer) {
  Start({.max_streams_per_reader = 4});
  for (uint64_t i = 1; i <= 4; ++i) {
    EXPECT_THAT(Open(Incarnation{1000 + i}, 1), IsOk());
  }
  for (uint64_t i = 5; i <= 8; ++i) {
    EXPECT_THAT(Open(Incarnation{1000 + i}, 1),
                StatusIs(absl::StatusCode::kResourceExhausted,
                         HasSubstr("max_streams_per_reader")));
  }
  EXPECT_EQ(NumOpen(), 4);
}

TEST_F(StreamOfNonMembersTest, RepeatedOpenDoesNotCountTowardsTheLimit) {
  Start({.max_streams_per_reader = 2});
  EXPECT_THAT(Open(Incarnation{1001}, 1), IsOk());
  EXPECT_THAT(Open(Incarnation{1001}, 1),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Open(Incarnation{1001}, 2), IsOk());
}

// Incarnations are no secret, and a reader may claim any.
TEST_F(StreamOfNonMembersTest, ReadersOfOtherNamesHaveOtherStreams) {
  Start({});
  EXPECT_THAT(Open(Incarnation{1001}, 1), IsOk());
  name_ = "other";
  EXPECT_THAT(Next(Incarnation{1001}, 1),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(Close(Incarnation{1001}, 1), IsOk());
  EXPECT_EQ(NumOpen(), 1);
  EXPECT_THAT(Open(Incarnation{1001}, 1), IsOk());
  EXPECT_EQ(NumOpen(), 2);
}

TEST_F(StreamOfNonMembersTest, StreamOfASilentNonMemberEnds) {
  Start({.non_member_limit = absl::Seconds(10)});
  EXPECT_THAT(Open(Incarnation{1001}, 1), IsOk());
  EXPECT_THAT(Open(Incarnation{1001}, 2), IsOk());
  clock_.AdvanceBy(absl::Seconds(8));
  EXPECT_THAT(Next(Incarnation{1001}, 2), IsOk());
  clock_.AdvanceBy(absl::Seconds(8));
  EXPECT_THAT(Next(Incarnation{1001}, 1),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(Next(Incarnation{1001}, 2), IsOk());
  clock_.AdvanceBy(absl::Seconds(20));
  EXPECT_EQ(NumOpen(), 0);
}

TEST_F(StreamOfNonMembersTest, NonMemberThatWaitsForAValueIsNotSilent) {
  Start({.non_member_limit = absl::Seconds(10)});
  ASSERT_THAT(Open(Incarnation{1001}, 1, kSlow), IsOk());
  std::future<absl::Status> next = std::async(
      std::launch::async, [this] { return Next(Incarnation{1001}, 1); });
  while (!Awaited()) std::this_thread::yield();
  clock_.AdvanceBy(absl::Seconds(60));
  EXPECT_EQ(NumOpen(), 1);
  ended_.Set(absl::OkStatus());
  EXPECT_THAT(next.get(), IsOk());
}

TEST_F(StreamOfNonMembersTest, StreamOfASilentMemberContinues) {
  Start({.non_member_limit = absl::Seconds(10)});
  auto reader = Stream(job_.agent(0), "w0", {.timeout = kNoTimeout}, kForever);
  ASSERT_THAT(reader, IsOk());
  EXPECT_THAT(reader->Next().Wait(), IsOk());
  clock_.AdvanceBy(absl::Seconds(60));
  EXPECT_EQ(NumOpen(), 1);
}

}  // namespace
}  // namespace hawser::rpc
