#include "net/grpc/shared_queue.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/byte_buffer.h>

#include <optional>
#include <thread>

#include "gtest/gtest.h"
#include "net/grpc/completion_event.h"

namespace hawser::net {
namespace {

// A queue and its polling thread.
class PolledQueue {
 public:
  ~PolledQueue() {
    queue_.Shutdown();
    thread_.join();
  }
  grpc::CompletionQueue* queue() { return &queue_; }
  std::thread::id thread() const { return thread_.get_id(); }

 private:
  grpc::CompletionQueue queue_;
  std::thread thread_{[this] {
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
      static_cast<CompletionEvent*>(tag)->OnEvent(ok);
    }
  }};
};

// A call to a server that does not exist. Its members are set by its end.
class DeadCall {
 public:
  explicit DeadCall(bool wait_for_server) {
    context_.set_wait_for_ready(wait_for_server);
  }

  bool Start() {
    return SharedQueue::StartUnary(
        &context_,
        [&](grpc::CompletionQueue* queue) {
          return stub_.PrepareUnaryCall(&context_, "/t.T/Call",
                                        grpc::ByteBuffer(), queue);
        },
        &reply_,
        [this](const grpc::Status& status) {
          code = status.error_code();
          thread = std::this_thread::get_id();
        });
  }

  std::optional<grpc::StatusCode> code;
  std::optional<std::thread::id> thread;

 private:
  grpc::GenericStub stub_{grpc::CreateChannel(
      "unix:/nonexistent/socket", grpc::InsecureChannelCredentials())};
  grpc::ClientContext context_;
  grpc::ByteBuffer reply_;
};

TEST(SharedQueueTest, WithoutAQueueNothingIsStarted) {
  DeadCall call(/*wait_for_server=*/false);
  EXPECT_FALSE(call.Start());
  {
    PolledQueue polled;
    SharedQueue shared(polled.queue());
    shared.Withdraw();
    EXPECT_FALSE(call.Start());
  }
  EXPECT_FALSE(call.code.has_value());
}

TEST(SharedQueueTest, CallEndsInThePollingThreadOfTheQueueSharedLast) {
  DeadCall call(/*wait_for_server=*/false);
  std::thread::id expected;
  {
    PolledQueue first;
    PolledQueue last;
    const SharedQueue first_shared(first.queue());
    SharedQueue last_shared(last.queue());
    ASSERT_TRUE(call.Start());
    expected = last.thread();
  }
  EXPECT_TRUE(call.code.has_value());
  EXPECT_EQ(call.thread, expected);
}

TEST(SharedQueueTest, WithdrawCancelsCallsThatWait) {
  DeadCall call(/*wait_for_server=*/true);
  {
    PolledQueue polled;
    SharedQueue shared(polled.queue());
    ASSERT_TRUE(call.Start());
    shared.Withdraw();
  }
  EXPECT_EQ(call.code, grpc::StatusCode::CANCELLED);
}

}  // namespace
}  // namespace hawser::net
