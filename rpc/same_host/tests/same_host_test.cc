// Tests of calls through shared memory with both ends in one process and a fake
// socket.

#include "rpc/same_host/same_host.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <future>
#include <memory>
#include <semaphore>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/future.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/same_host.pb.h"
#include "rpc/same_host/tests/filesystem_footprint.h"
#include "rpc/same_host/tests/same_host_test_fixture.h"
#include "rpc/transport/payload.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

async::MonotonicTime In(absl::Duration time) {
  return async::AddDelay(std::chrono::steady_clock::now(), time);
}

TEST_F(SameHostTest, MessagesOfManySizesRoundTripWithoutTheSocket) {
  for (size_t size :
       {0, 1, 4095, 4096, 4097, 16384, 100'000, 524'288, 524'289, 20'000'000}) {
    std::string text(size, 'x');
    for (size_t i = 0; i < size; i += 1009) text[i] = static_cast<char>(i);
    EXPECT_THAT(Call("/t.T/Echo", text).Wait(), IsOkAndHolds(text));
  }
  EXPECT_EQ(socket_->num_calls, 0);
}

TEST_F(SameHostTest, MessagesOfManyChunksRoundTrip) {
  for (int chunks : {3, 100, 5000}) {
    Payload payload;
    std::string all;
    for (int i = 0; i < chunks; ++i) {
      const std::string chunk(i % 3 == 0 ? 5000 : 20,
                              static_cast<char>('a' + i % 26));
      payload.Append(chunk);
      all += chunk;
    }
    EXPECT_THAT(Call(*connection_, "/t.T/Echo", std::move(payload)).Wait(),
                IsOkAndHolds(all));
  }
}

TEST_F(SameHostTest, ManyCallsOfManyThreadsGetTheirOwnReplies) {
  constexpr int kThreads = 4;
  constexpr int kCalls = 500;
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::vector<std::pair<std::string, async::Future<std::string>>> calls;
      for (int i = 0; i < kCalls; ++i) {
        // Every eighth message is read from the peer's memory.
        const std::string text =
            absl::StrCat(t, ":", i, std::string(i % 8 == 0 ? 10'000 : 0, 'x'));
        auto promise = std::make_shared<async::Promise<std::string>>();
        async::Future<std::string> future = promise->future();
        const Connection::CallId id = connection_->Call(
            "/t.T/Echo", Payload(text), async::kNever,
            [promise](absl::StatusOr<Payload> reply) {
              promise->Set(reply.ok()
                               ? reply->Flatten()
                               : absl::StatusOr<std::string>(reply.status()));
            });
        // Some callers poll themselves, concurrently with the loop.
        if (i % 5 == 0) connection_->AwaitReply(id, [] { return false; });
        calls.emplace_back(text, std::move(future));
      }
      for (auto& [text, future] : calls) {
        const absl::StatusOr<std::string> reply = std::move(future).Wait();
        if (!reply.ok() || *reply != text) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// Whichever of them, or of the loop's threads, receives it.
TEST_F(SameHostTest, ReplyIsHandledByTheThreadThatAwaitsIt) {
  constexpr int kThreads = 2;
  constexpr int kCalls = 100;
  connection_->Close(absl::CancelledError("another takes its place"));
  client_->Shutdown();
  // Its threads poll for as long as the test takes.
  client_ = std::make_unique<End>(absl::Minutes(1));
  Connect();
  std::atomic<int> elsewhere = 0;
  std::counting_semaphore<> polling(0);
  const auto call_and_await = [&] {
    bool ended = false;
    const Connection::CallId id =
        connection_->Call("/t.T/Hold", Payload("x"), async::kNever,
                          [&, caller = std::this_thread::get_id()](
                              const absl::StatusOr<Payload>&) {
                            if (std::this_thread::get_id() != caller) {
                              ++elsewhere;
                            }
                            ended = true;
                          });
    // Replied to only once this thread polls.
    bool let_go = false;
    connection_->AwaitReply(id, [&] {
      if (!std::exchange(let_go, true)) polling.release();
      return false;
    });
    EXPECT_TRUE(ended);
  };
  for (int i = 0; i < kCalls; ++i) {
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) threads.emplace_back(call_and_await);
    for (int t = 0; t < kThreads; ++t) polling.acquire();
    for (int t = 0; t < kThreads; ++t) TakeHeld()->Reply(Payload("y"));
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(elsewhere, 0);
}

TEST_F(SameHostTest, ACallbackRunByAwaitReplyMayWaitForOtherReplies) {
  constexpr int kCalls = 50;
  connection_->Close(absl::CancelledError("another takes its place"));
  client_->Shutdown();
  // Its thread sleeps as soon as it has no work.
  client_ = std::make_unique<End>(absl::ZeroDuration());
  Connect();
  // While held, that thread does not receive replies.
  std::promise<void> held, let_go;
  connection_->Call("/t.T/Echo", Payload("x"), async::kNever,
                    [&](absl::StatusOr<Payload>) {
                      held.set_value();
                      let_go.get_future().wait();
                    });
  held.get_future().wait();
  std::thread answers([&] {
    for (int i = 0; i < kCalls; ++i) TakeHeld()->Reply(Payload("y"));
  });
  bool called = false;
  const Connection::CallId id = connection_->Call(
      "/t.T/Echo", Payload("x"), async::kNever, [&](absl::StatusOr<Payload>) {
        called = true;
        let_go.set_value();
        for (int i = 0; i < kCalls; ++i) {
          EXPECT_THAT(Call("/t.T/Hold", "x").Wait(), IsOkAndHolds("y"));
        }
      });
  while (!called) connection_->AwaitReply(id, [] { return false; });
  answers.join();
}

TEST_F(SameHostTest, MessagesBeyondTheRingAndTheSlotsAreQueued) {
  constexpr int kCalls = 6000;
  std::vector<async::Future<std::string>> futures;
  for (int i = 0; i < kCalls; ++i) {
    futures.push_back(Call("/t.T/Hold", std::string(5000, 'x')));
  }
  for (int i = 0; i < kCalls; ++i) TakeHeld()->Reply(Payload("y"));
  for (auto& future : futures) {
    EXPECT_THAT(std::move(future).Wait(), IsOkAndHolds("y"));
  }
}

TEST_F(SameHostTest, ErrorsKeepCodeMessageAndPayloads) {
  auto future = Call("/t.T/Hold", "x");
  absl::Status error = absl::DataLossError("lost");
  error.SetPayload("url", absl::Cord("value"));
  TakeHeld()->Reply(error);
  const absl::StatusOr<std::string> reply = std::move(future).Wait();
  EXPECT_THAT(reply, StatusIs(absl::StatusCode::kDataLoss, "lost"));
  EXPECT_EQ(reply.status().GetPayload("url"), absl::Cord("value"));
}

TEST_F(SameHostTest, LinkSurvivesErrorTextsThatAreLongOrNotUtf8) {
  auto other = Call("/t.T/Hold", "x");
  const std::unique_ptr<IncomingCall> held = TakeHeld();
  std::vector<std::string> texts = {"caf\xe9"};
  // For each length at which a text may be cut, one of these has a multi-byte
  // character there.
  for (int offset = 0; offset < 4; ++offset) {
    std::string& text = texts.emplace_back(offset, 'x');
    for (int i = 0; i < 2000; ++i) text += "\xf0\x9f\x98\x80";
  }
  for (const std::string& text : texts) {
    auto future = Call("/t.T/Hold", "x");
    absl::Status error = absl::DataLossError(text);
    error.SetPayload("url", absl::Cord("value"));
    TakeHeld()->Reply(error);
    const absl::StatusOr<std::string> reply = std::move(future).Wait();
    ASSERT_THAT(reply, StatusIs(absl::StatusCode::kDataLoss));
    EXPECT_EQ(reply.status().GetPayload("url"), absl::Cord("value"));
  }
  held->Reply(Payload("y"));
  EXPECT_THAT(std::move(other).Wait(), IsOkAndHolds("y"));
  EXPECT_EQ(socket_->num_calls, 0);
}

TEST_F(SameHostTest, UnknownMethodIsUnimplemented) {
  EXPECT_THAT(Call("/t.T/Nothing", "x").Wait(),
              StatusIs(absl::StatusCode::kUnimplemented));
}

TEST_F(SameHostTest, DeadlineEndsTheCallAtBothEnds) {
  auto future = Call("/t.T/Hold", "x", In(absl::Milliseconds(200)));
  auto call = TakeHeld();
  EXPECT_LE(call->deadline(), In(absl::Milliseconds(200)));
  async::Promise<void> cancelled;
  const async::Future<void> seen = cancelled.future();
  const auto registration =
      call->cancellation()->OnCancel([&] { cancelled.Set(absl::OkStatus()); });
  EXPECT_THAT(std::move(future).Wait(),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_THAT(seen.Wait(), IsOk());
  call->Reply(Payload("late"));
}

TEST_F(SameHostTest, CancelReachesTheServer) {
  auto future = Call("/t.T/Hold", "x");
  auto call = TakeHeld();
  async::Promise<void> cancelled;
  const async::Future<void> seen = cancelled.future();
  const auto registration =
      call->cancellation()->OnCancel([&] { cancelled.Set(absl::OkStatus()); });
  connection_->Cancel(last_id_);
  EXPECT_THAT(std::move(future).Wait(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(seen.Wait(), IsOk());
}

// The caller may not know yet that the call has ended.
TEST_F(SameHostTest, CancelOfACallBeforeARestartReachesNoOtherCall) {
  auto before = Call("/t.T/Hold", "x");
  const Connection::CallId id = last_id_;
  auto held = TakeHeld();
  RestartServer();
  EXPECT_THAT(std::move(before).Wait(),
              StatusIs(absl::StatusCode::kUnavailable));
  // As many calls through this link as through the previous one.
  auto after = Call("/t.T/Hold", "x");
  auto call = TakeHeld();
  connection_->Cancel(id);
  call->Reply(Payload("y"));
  EXPECT_THAT(std::move(after).Wait(), IsOkAndHolds("y"));
}

TEST_F(SameHostTest, CallersHaveTheIdentityProvenOverTheSocket) {
  auto future = Call("/t.T/Hold", "x");
  auto call = TakeHeld();
  EXPECT_THAT(call->caller(), IsOkAndHolds(testing::Optional(net::Identity{
                                  .job = "job", .worker = "w1"})));
  call->Reply(Payload("y"));
  EXPECT_THAT(std::move(future).Wait(), IsOk());
}

TEST_F(SameHostTest, DroppedCallsFail) {
  auto future = Call("/t.T/Hold", "x");
  TakeHeld().reset();
  EXPECT_THAT(std::move(future).Wait(),
              StatusIs(absl::StatusCode::kUnavailable));
}

// Of messages up to 512 KiB the sender's memory is free once they are sent.
TEST_F(SameHostTest, MessagesInTheHeapDoNotKeepTheSendersMemory) {
  auto memory = std::make_shared<std::string>(100'000, 'x');
  Payload request;
  request.Append(memory, memory->data(), memory->size());
  auto future = Call(*connection_, "/t.T/Hold", std::move(request));
  auto call = TakeHeld();
  EXPECT_EQ(memory.use_count(), 1);
  const std::string sent = *memory;
  *memory = std::string(100'000, 'y');
  EXPECT_THAT(call->TakeRequest().Flatten(), IsOkAndHolds(sent));
  Payload reply;
  reply.Append(memory, memory->data(), memory->size());
  call->Reply(std::move(reply));
  EXPECT_THAT(std::move(future).Wait(), IsOkAndHolds(*memory));
  EXPECT_EQ(memory.use_count(), 1);
}

// 4 MiB, which 40 messages of 500,000 bytes exceed.
TEST_F(SameHostTest, MessagesBeyondTheHeapAreReadInPlace) {
  std::vector<async::Future<std::string>> futures;
  std::vector<std::string> texts;
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 40; ++i) {
      texts.emplace_back(500'000, static_cast<char>('A' + i));
      futures.push_back(Call("/t.T/Hold", texts.back()));
    }
    for (int i = 0; i < 40; ++i) {
      auto call = TakeHeld();
      call->Reply(call->TakeRequest());
    }
    for (size_t i = 0; i < futures.size(); ++i) {
      EXPECT_THAT(std::move(futures[i]).Wait(), IsOkAndHolds(texts[i]));
    }
    futures.clear();
    texts.clear();
  }
  EXPECT_EQ(socket_->num_calls, 0);
}

// A range of a cancelled call is used again.
TEST_F(SameHostTest, FreedRangesOfTheHeapAreNeverReturnedToAReader) {
  auto future = Call("/t.T/Hold", std::string(100'000, 'x'));
  auto call = TakeHeld();
  const Payload there = call->TakeRequest();
  EXPECT_THAT(there.Flatten(), IsOkAndHolds(std::string(100'000, 'x')));
  connection_->Cancel(last_id_);
  EXPECT_THAT(std::move(future).Wait(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(Call("/t.T/Echo", std::string(100'000, 'y')).Wait(), IsOk());
  EXPECT_THAT(there.Flatten(), StatusIs(absl::StatusCode::kUnavailable,
                                        HasSubstr("freed the message")));
}

// The memory of a cancelled call is reused.
TEST_F(SameHostTest, FreedBytesAreNeverReturnedToAReader) {
  auto memory = std::make_shared<std::string>(1'000'000, 'x');
  Payload request;
  request.Append(memory, memory->data(), memory->size());
  auto future = Call(*connection_, "/t.T/Hold", std::move(request));
  auto call = TakeHeld();
  const Payload there = call->TakeRequest();
  EXPECT_THAT(there.Flatten(), IsOkAndHolds(std::string(1'000'000, 'x')));
  EXPECT_EQ(memory.use_count(), 2);
  connection_->Cancel(last_id_);
  EXPECT_THAT(std::move(future).Wait(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(memory.use_count(), 1);
  *memory = std::string(1'000'000, 'y');
  EXPECT_THAT(there.Flatten(), StatusIs(absl::StatusCode::kUnavailable,
                                        HasSubstr("freed the message")));
}

TEST_F(SameHostTest, RepliesAreKeptUntilTheyAreRead) {
  auto memory = std::make_shared<std::string>(1'000'000, 'x');
  auto promise = std::make_shared<async::Promise<Payload>>();
  const async::Future<Payload> future = promise->future();
  connection_->Call("/t.T/Hold", Payload("x"), async::kNever,
                    [promise](absl::StatusOr<Payload> reply) {
                      promise->Set(std::move(reply));
                    });
  {
    auto call = TakeHeld();
    Payload reply;
    reply.Append(memory, memory->data(), memory->size());
    call->Reply(std::move(reply));
  }
  absl::StatusOr<Payload> reply = future.Wait();
  ASSERT_THAT(reply, IsOk());
  EXPECT_EQ(memory.use_count(), 2);
  EXPECT_THAT(reply->Flatten(), IsOkAndHolds(*memory));
}

TEST_F(SameHostTest, StoppingServerEndsItsCallsAndTheSocketTakesOver) {
  auto future = Call("/t.T/Hold", "x");
  auto call = TakeHeld();
  server_->Shutdown();
  EXPECT_THAT(std::move(future).Wait(),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_TRUE(call->cancellation()->cancelled());
  call->Reply(Payload("late"));
  EXPECT_THAT(Call("/t.T/Echo", "x").Wait(),
              StatusIs(absl::StatusCode::kUnavailable, "over the socket"));
}

TEST_F(SameHostTest, ClosedConnectionReturnsItsStatus) {
  auto future = Call("/t.T/Hold", "x");
  auto call = TakeHeld();
  async::Promise<void> cancelled;
  const async::Future<void> seen = cancelled.future();
  const auto registration =
      call->cancellation()->OnCancel([&] { cancelled.Set(absl::OkStatus()); });
  connection_->Close(absl::AbortedError("closed by the test"));
  EXPECT_THAT(std::move(future).Wait(),
              StatusIs(absl::StatusCode::kAborted, "closed by the test"));
  EXPECT_THAT(seen.Wait(), IsOk());
}

TEST_F(SameHostTest, MessagesAboveTheLimitAreRefused) {
  auto future = Call("/t.T/Hold", "x");
  TakeHeld()->Reply(Payload(std::string(kMaxMessageBytes + 1, 'x')));
  EXPECT_THAT(std::move(future).Wait(),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("max_message_bytes")));
}

TEST_F(SameHostTest, AnotherMachineIsRefused) {
  v1::OpenSameHostRequest request;
  request.set_boot_id("another");
  absl::StatusOr<Payload> reply = absl::UnknownError("none");
  FakeSocket(open_).Call(
      kOpenPath, Payload(request.SerializeAsString()), async::kNever,
      [&](absl::StatusOr<Payload> r) { reply = std::move(r); });
  EXPECT_THAT(reply, StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(SameHostTest, LeavesNoFilesBehind) {
  const std::string text(20'000'000, 'x');
  EXPECT_THAT(Call("/t.T/Echo", text).Wait(), IsOkAndHolds(text));
  EXPECT_EQ(socket_->num_calls, 0);
  // Both ends are in this process.
  EXPECT_THAT(FilesystemFootprintOf(getpid()), IsEmpty());
}

}  // namespace
}  // namespace hawser::rpc
