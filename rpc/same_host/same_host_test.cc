// Calls through memory, both ends in one process; the socket is a fake one.

#include "rpc/same_host/same_host.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "async/future.h"
#include "async/random_source.h"
#include "async/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/same_host.pb.h"
#include "rpc/same_host/unix_message.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kOpenPath[] = "/hawser.v1.SameHostService/Open";
constexpr size_t kMaxMessageBytes = size_t{64} << 20;

// What the socket would carry: counts the calls, and answers Open.
class FakeSocket final : public Connection {
 public:
  explicit FakeSocket(TransportMethod open) : open_(std::move(open)) {}

  CallId Call(std::string_view path, Payload request, async::MonotonicTime,
              Done done) override {
    if (path != kOpenPath) {
      ++num_calls;
      std::move(done)(absl::UnavailableError("over the socket"));
      return 0;
    }
    open_.handler(
        std::make_unique<OpenCall>(std::move(request), std::move(done)));
    return 0;
  }
  void Cancel(CallId) override {}
  void Close(absl::Status) override {}

  std::atomic<int> num_calls = 0;

 private:
  class OpenCall final : public IncomingCall {
   public:
    OpenCall(Payload request, Done done)
        : request_(std::move(request)), done_(std::move(done)) {}
    Payload TakeRequest() override { return std::move(request_); }
    async::MonotonicTime deadline() const override { return async::kNever; }
    const std::shared_ptr<Cancellation>& cancellation() const override {
      return cancellation_;
    }
    absl::StatusOr<std::optional<net::Identity>> caller() const override {
      return net::Identity{.job = "job", .worker = "w1"};
    }
    void Reply(absl::StatusOr<Payload> reply) override {
      std::move(done_)(std::move(reply));
    }
    void Discard() override {}

   private:
    Payload request_;
    Done done_;
    const std::shared_ptr<Cancellation> cancellation_;
  };

  const TransportMethod open_;
};

// One transport's part.
struct End {
  explicit End(absl::Duration spin = absl::Microseconds(50))
      : host({.max_message_bytes = kMaxMessageBytes, .spin = spin}, gate) {}
  ~End() { Shutdown(); }

  void Shutdown() {
    host.Stop();
    gate->Close();
    host.Shutdown();
  }

  const std::shared_ptr<Gate> gate = std::make_shared<Gate>();
  SameHost host;
};

class SameHostTest : public testing::Test {
 protected:
  SameHostTest() {
    std::vector<TransportMethod> methods;
    methods.push_back({"/t.T/Echo", [](std::unique_ptr<IncomingCall> call) {
                         call->Reply(call->TakeRequest());
                       }});
    methods.push_back({"/t.T/Hold", [this](std::unique_ptr<IncomingCall> call) {
                         async::MutexLock lock(&mutex_);
                         held_.push_back(std::move(call));
                         changed_.NotifyAll();
                       }});
    open_ = server_->host.Serve(methods);
    Connect();
  }
  ~SameHostTest() override {
    connection_->Close(absl::CancelledError("the test has ended"));
    client_->Shutdown();
    server_->Shutdown();
  }

  void Connect() {
    socket_ = std::make_shared<FakeSocket>(open_);
    connection_ = client_->host.Wrap(socket_);
    Open(*connection_);
  }

  // Until the way through memory is there calls take the socket.
  void Open(Connection& connection) {
    const auto deadline =
        std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!Call(connection, "/t.T/Echo", Payload("x")).Wait().ok()) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline);
      std::this_thread::yield();
    }
    socket_->num_calls = 0;
  }

  async::Future<std::string> Call(
      Connection& connection, std::string_view path, Payload request,
      async::MonotonicTime deadline = async::kNever) {
    auto promise = std::make_shared<async::Promise<std::string>>();
    async::Future<std::string> future = promise->future();
    last_id_ = connection.Call(
        path, std::move(request), deadline,
        [promise](absl::StatusOr<Payload> reply) {
          promise->Set(reply.ok()
                           ? reply->Flatten()
                           : absl::StatusOr<std::string>(reply.status()));
        });
    return future;
  }
  async::Future<std::string> Call(
      std::string_view path, std::string request,
      async::MonotonicTime deadline = async::kNever) {
    return Call(*connection_, path, Payload(std::move(request)), deadline);
  }

  std::unique_ptr<IncomingCall> TakeHeld() {
    async::MutexLock lock(&mutex_);
    while (held_.empty()) changed_.Wait(&mutex_);
    std::unique_ptr<IncomingCall> call = std::move(held_.front());
    held_.erase(held_.begin());
    return call;
  }

  async::Mutex mutex_;
  async::CondVar changed_;
  std::vector<std::unique_ptr<IncomingCall>> held_;
  std::unique_ptr<End> server_ = std::make_unique<End>();
  std::unique_ptr<End> client_ = std::make_unique<End>();
  TransportMethod open_;
  std::shared_ptr<FakeSocket> socket_;
  std::shared_ptr<Connection> connection_;
  Connection::CallId last_id_ = 0;
};

async::MonotonicTime In(absl::Duration time) {
  return async::AddDelay(std::chrono::steady_clock::now(), time);
}

TEST_F(SameHostTest, MessagesOfManySizesComeBackAndNoneOverTheSocket) {
  for (size_t size : {0, 1, 4095, 4096, 4097, 16384, 100'000, 20'000'000}) {
    std::string text(size, 'x');
    for (size_t i = 0; i < size; i += 1009) text[i] = static_cast<char>(i);
    EXPECT_THAT(Call("/t.T/Echo", text).Wait(), IsOkAndHolds(text));
  }
  EXPECT_EQ(socket_->num_calls, 0);
}

TEST_F(SameHostTest, MessagesOfManyPiecesComeBack) {
  for (int pieces : {3, 100, 5000}) {
    Payload payload;
    std::string all;
    for (int i = 0; i < pieces; ++i) {
      const std::string piece(i % 3 == 0 ? 5000 : 20,
                              static_cast<char>('a' + i % 26));
      payload.Append(piece);
      all += piece;
    }
    EXPECT_THAT(Call(*connection_, "/t.T/Echo", std::move(payload)).Wait(),
                IsOkAndHolds(all));
  }
}

TEST_F(SameHostTest, ManyCallsOfManyThreadsGetTheirOwnAnswers) {
  constexpr int kThreads = 4;
  constexpr int kCalls = 500;
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::vector<std::pair<std::string, async::Future<std::string>>> calls;
      for (int i = 0; i < kCalls; ++i) {
        // Every eighth one is read from the other's memory.
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
        // Some look themselves, also while the loop does.
        if (i % 5 == 0) connection_->AwaitReply(id);
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

TEST_F(SameHostTest, MoreThanTheRingAndTheSlotsHoldWaitsItsTurn) {
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

TEST_F(SameHostTest, ErrorsComeWithCodeMessageAndPayloads) {
  auto future = Call("/t.T/Hold", "x");
  absl::Status error = absl::DataLossError("lost");
  error.SetPayload("url", absl::Cord("value"));
  TakeHeld()->Reply(error);
  const absl::StatusOr<std::string> reply = std::move(future).Wait();
  EXPECT_THAT(reply, StatusIs(absl::StatusCode::kDataLoss, "lost"));
  EXPECT_EQ(reply.status().GetPayload("url"), absl::Cord("value"));
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

TEST_F(SameHostTest, CallsAreOfWhomTheSocketKnows) {
  auto future = Call("/t.T/Hold", "x");
  auto call = TakeHeld();
  EXPECT_THAT(call->caller(), IsOkAndHolds(testing::Optional(net::Identity{
                                  .job = "job", .worker = "w1"})));
  call->Reply(Payload("y"));
  EXPECT_THAT(std::move(future).Wait(), IsOk());
}

TEST_F(SameHostTest, DroppedCallsAreAnswered) {
  auto future = Call("/t.T/Hold", "x");
  TakeHeld().reset();
  EXPECT_THAT(std::move(future).Wait(),
              StatusIs(absl::StatusCode::kUnavailable));
}

// The memory of a call that was given up is used for other things.
TEST_F(SameHostTest, BytesTakenBackAreNeverGivenToAReader) {
  auto memory = std::make_shared<std::string>(100'000, 'x');
  Payload request;
  request.Append(memory, memory->data(), memory->size());
  auto future = Call(*connection_, "/t.T/Hold", std::move(request));
  auto call = TakeHeld();
  const Payload there = call->TakeRequest();
  EXPECT_THAT(there.Flatten(), IsOkAndHolds(std::string(100'000, 'x')));
  EXPECT_EQ(memory.use_count(), 2);
  connection_->Cancel(last_id_);
  EXPECT_THAT(std::move(future).Wait(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(memory.use_count(), 1);
  *memory = std::string(100'000, 'y');
  EXPECT_THAT(there.Flatten(), StatusIs(absl::StatusCode::kUnavailable,
                                        HasSubstr("taken the message back")));
}

TEST_F(SameHostTest, RepliesAreKeptUntilTheyAreRead) {
  auto memory = std::make_shared<std::string>(100'000, 'x');
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

TEST_F(SameHostTest, ClosedConnectionGivesItsStatus) {
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

TEST_F(SameHostTest, LeavesNoFileBehind) {
  for (const auto& file : std::filesystem::directory_iterator("/dev/shm")) {
    EXPECT_THAT(file.path().string(), testing::Not(HasSubstr("hawser-rpc")));
  }
}

// A client that shows something else than what proto/same_host.proto says.
class StrangeClientTest : public SameHostTest {
 protected:
  v1::OpenSameHostReply Door() {
    v1::OpenSameHostRequest request;
    request.set_boot_id(BootId());
    v1::OpenSameHostReply door;
    FakeSocket(open_).Call(kOpenPath, Payload(request.SerializeAsString()),
                           async::kNever, [&](absl::StatusOr<Payload> reply) {
                             ASSERT_THAT(reply, IsOk());
                             door.ParseFromString(reply->Flatten().value());
                           });
    return door;
  }

  // Whether the server closes the socket without an answer.
  static bool IsClosed(int socket) {
    v1::SameHostWelcome welcome;
    while (true) {
      const auto fds = ReceiveUnixMessage(socket, 2, welcome);
      if (fds.ok()) return false;
      if (absl::IsUnavailable(fds.status())) {
        // EAGAIN is kUnavailable too.
        if (absl::StrContains(fds.status().message(), "closed")) return true;
      } else {
        return true;
      }
      std::this_thread::yield();
    }
  }
};

TEST_F(StrangeClientTest, WithoutGoodTicketNobodyComesIn) {
  const v1::OpenSameHostReply door = Door();
  absl::StatusOr<std::unique_ptr<EventLoop>> loop = EventLoop::Create({});
  ASSERT_THAT(loop, IsOk());
  const int bell[] = {(*loop)->doorbell()};
  v1::SameHostHello hello;
  hello.set_ticket("guessed");
  auto socket = ConnectAbstract(door.socket_name());
  ASSERT_THAT(socket, IsOk());
  ASSERT_THAT(SendUnixMessage(socket->get(), hello, bell), IsOk());
  EXPECT_TRUE(IsClosed(socket->get()));
}

TEST_F(StrangeClientTest, ATicketIsGoodOnce) {
  const v1::OpenSameHostReply door = Door();
  absl::StatusOr<std::unique_ptr<EventLoop>> loop = EventLoop::Create({});
  ASSERT_THAT(loop, IsOk());
  const int bell[] = {(*loop)->doorbell()};
  const uint64_t word = 42;
  for (const bool good : {true, false}) {
    v1::SameHostHello hello;
    hello.set_ticket(door.ticket());
    hello.mutable_probe()->set_address(reinterpret_cast<uintptr_t>(&word));
    hello.mutable_probe()->set_value(word);
    auto socket = ConnectAbstract(door.socket_name());
    ASSERT_THAT(socket, IsOk());
    ASSERT_THAT(SendUnixMessage(socket->get(), hello, bell), IsOk());
    EXPECT_EQ(IsClosed(socket->get()), !good);
  }
}

TEST_F(StrangeClientTest, WhoseMemoryCannotBeReadOrHasNoBellStaysOutside) {
  absl::StatusOr<std::unique_ptr<EventLoop>> loop = EventLoop::Create({});
  ASSERT_THAT(loop, IsOk());
  const uint64_t word = 42;
  const int pipe = dup(0);
  enum Flaw { kUnreadable, kOtherValue, kNoBell };
  for (const Flaw flaw : {kUnreadable, kOtherValue, kNoBell}) {
    const v1::OpenSameHostReply door = Door();
    v1::SameHostHello hello;
    hello.set_ticket(door.ticket());
    hello.mutable_probe()->set_address(
        flaw == kUnreadable ? 8 : reinterpret_cast<uintptr_t>(&word));
    hello.mutable_probe()->set_value(flaw == kOtherValue ? word + 1 : word);
    const int bell[] = {flaw == kNoBell ? pipe : (*loop)->doorbell()};
    auto socket = ConnectAbstract(door.socket_name());
    ASSERT_THAT(socket, IsOk());
    ASSERT_THAT(SendUnixMessage(socket->get(), hello, bell), IsOk());
    EXPECT_TRUE(IsClosed(socket->get()));
  }
  close(pipe);
}

// A client that came in and then writes what it likes into the ring.
class HostileClientTest : public StrangeClientTest {
 protected:
  void ComeIn() {
    const v1::OpenSameHostReply door = Door();
    loop_ = *EventLoop::Create({});
    async::Promise<void> joined;
    const async::Future<void> done = joined.future();
    ConnectSameHost(loop_.get(), door, kMaxMessageBytes,
                    [&](absl::StatusOr<SameHostLink::Parts> parts) {
                      ASSERT_THAT(parts, IsOk());
                      parts_ = *std::move(parts);
                      joined.Set(absl::OkStatus());
                    });
    ASSERT_THAT(done.Wait(), IsOk());
  }

  void Ring() {
    const uint64_t one = 1;
    ASSERT_EQ(write(parts_.doorbell.get(), &one, sizeof(one)),
              static_cast<ssize_t>(sizeof(one)));
  }

  // The server hangs up.
  void AwaitEnd() {
    v1::SameHostReady ready;
    while (true) {
      const absl::Status status =
          ReceiveUnixMessage(parts_.socket.get(), 0, ready).status();
      if (absl::StrContains(status.message(), "closed")) return;
      std::this_thread::yield();
    }
  }

  SegmentHalf& half() { return parts_.segment->layout().to_server; }

  std::unique_ptr<EventLoop> loop_;
  SameHostLink::Parts parts_;
};

TEST_F(HostileClientTest, AnImpossibleCounterEndsTheLink) {
  ComeIn();
  half().control.written.store(~uint64_t{0});
  Ring();
  AwaitEnd();
  EXPECT_THAT(Call("/t.T/Echo", "still served").Wait(), IsOk());
}

TEST_F(HostileClientTest, AMalformedFrameEndsTheLink) {
  ComeIn();
  RingWriter writer(&half().control, half().bytes.data(), kRingBytes);
  ASSERT_EQ(writer.Write("\xff\xff\xff"), RingResult::kDone);
  Ring();
  AwaitEnd();
  EXPECT_THAT(Call("/t.T/Echo", "still served").Wait(), IsOk());
}

TEST_F(HostileClientTest, ASlotThatDoesNotExistEndsTheLink) {
  ComeIn();
  v1::SameHostFrame frame;
  frame.set_kind(v1::SameHostFrame::KIND_REQUEST);
  frame.set_call(1);
  frame.set_path("/t.T/Echo");
  frame.set_slot(kNumSlots);
  frame.add_chunks()->set_address(8);
  frame.mutable_chunks(0)->set_size(10);
  RingWriter writer(&half().control, half().bytes.data(), kRingBytes);
  ASSERT_EQ(writer.Write(frame.SerializeAsString()), RingResult::kDone);
  Ring();
  AwaitEnd();
}

TEST_F(HostileClientTest, AddressesThatAreNotThereAndSizesAboveTheLimitFail) {
  ComeIn();
  RingWriter writer(&half().control, half().bytes.data(), kRingBytes);
  SegmentHalf& replies = parts_.segment->layout().to_client;
  RingReader reader(&replies.control, replies.bytes.data(), kRingBytes);
  uint64_t call = 0;
  for (const uint64_t size : {uint64_t{10}, uint64_t{1} << 40, ~uint64_t{0}}) {
    v1::SameHostFrame frame;
    frame.set_kind(v1::SameHostFrame::KIND_REQUEST);
    frame.set_call(++call);
    // What is refused never gets to be held.
    frame.set_path(size == 10 ? "/t.T/Echo" : "/t.T/Hold");
    frame.add_chunks()->set_address(8);
    frame.mutable_chunks(0)->set_size(size);
    ASSERT_EQ(writer.Write(frame.SerializeAsString()), RingResult::kDone);
    Ring();
    std::string bytes;
    while (reader.Read(bytes) == RingResult::kNothing) {
      std::this_thread::yield();
    }
    v1::SameHostFrame reply;
    ASSERT_TRUE(reply.ParseFromString(bytes));
    EXPECT_EQ(reply.call(), call);
    EXPECT_EQ(
        reply.error().code(),
        static_cast<int>(size == 10 ? absl::StatusCode::kUnavailable
                                    : absl::StatusCode::kResourceExhausted));
  }
}

// Bytes of the ring from a random source: any end but a crash is right.
TEST_F(HostileClientTest, RandomFramesNeverCrashTheServer) {
  async::RandomSource random(11);
  for (int round = 0; round < 30; ++round) {
    ComeIn();
    RingWriter writer(&half().control, half().bytes.data(), kRingBytes);
    v1::SameHostFrame valid;
    valid.set_kind(v1::SameHostFrame::KIND_REQUEST);
    valid.set_call(1);
    valid.set_path("/t.T/Echo");
    valid.add_chunks()->set_content("content");
    valid.add_chunks()->set_address(reinterpret_cast<uintptr_t>(&random));
    valid.mutable_chunks(1)->set_size(32);
    for (int i = 0; i < 50; ++i) {
      valid.set_call(static_cast<uint64_t>(i));
      std::string bytes = valid.SerializeAsString();
      bytes[random.Below(bytes.size())] = static_cast<char>(random.Next());
      if (writer.Write(bytes) != RingResult::kDone) break;
    }
    Ring();
  }
  EXPECT_THAT(Call("/t.T/Echo", "still served").Wait(), IsOk());
}

}  // namespace
}  // namespace hawser::rpc
