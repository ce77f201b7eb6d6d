// A peer that violates the shared-memory protocol must lose its own link,
// without other effects.

#include <unistd.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "async/future.h"
#include "async/random_source.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipc/event_loop.h"
#include "ipc/peer_process.h"
#include "ipc/unix_message.h"
#include "net/auth/identity.h"
#include "net/server/open_file_limit.h"
#include "proto/same_host.pb.h"
#include "rpc/link/link_client.h"
#include "rpc/link/unread_replies.h"
#include "rpc/same_host/handshake.h"
#include "rpc/same_host/link.h"
#include "rpc/same_host/tests/same_host_test_fixture.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;

// Whether the peer at the other end has closed the link.
bool HasHungUp(const SameHostLink::Parts& parts) {
  v1::SameHostReady ready;
  return absl::StrContains(
      ipc::ReceiveUnixMessage(parts.socket.get(), 0, ready).status().message(),
      "closed");
}

// A client whose handshake violates proto/same_host.proto.
class StrangeClientTest : public SameHostTest {
 protected:
  v1::OpenSameHostReply Door() {
    v1::OpenSameHostRequest request;
    request.set_boot_id(ipc::BootId());
    v1::OpenSameHostReply door;
    FakeSocket(open_).Call(kOpenPath, Payload(request.SerializeAsString()),
                           async::kNever, [&](absl::StatusOr<Payload> reply) {
                             ASSERT_THAT(reply, IsOk());
                             door.ParseFromString(reply->Flatten().value());
                           });
    return door;
  }

  // Whether the server closes the socket without a reply.
  static bool IsClosed(int socket) {
    v1::SameHostWelcome welcome;
    while (true) {
      const auto fds = ipc::ReceiveUnixMessage(socket, 2, welcome);
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

TEST_F(StrangeClientTest, InvalidTicketIsRejected) {
  const v1::OpenSameHostReply door = Door();
  absl::StatusOr<std::unique_ptr<ipc::EventLoop>> loop =
      ipc::EventLoop::Create({});
  ASSERT_THAT(loop, IsOk());
  const int bell[] = {(*loop)->doorbell()};
  v1::SameHostHello hello;
  hello.set_ticket("guessed");
  auto socket = ipc::ConnectAbstract(door.socket_name());
  ASSERT_THAT(socket, IsOk());
  ASSERT_THAT(ipc::SendUnixMessage(socket->get(), hello, bell), IsOk());
  EXPECT_TRUE(IsClosed(socket->get()));
}

TEST_F(StrangeClientTest, TicketIsValidOnce) {
  const v1::OpenSameHostReply door = Door();
  absl::StatusOr<std::unique_ptr<ipc::EventLoop>> loop =
      ipc::EventLoop::Create({});
  ASSERT_THAT(loop, IsOk());
  const int bell[] = {(*loop)->doorbell()};
  const uint64_t word = 42;
  for (const bool good : {true, false}) {
    v1::SameHostHello hello;
    hello.set_ticket(door.ticket());
    hello.mutable_probe()->set_address(reinterpret_cast<uintptr_t>(&word));
    hello.mutable_probe()->set_value(word);
    auto socket = ipc::ConnectAbstract(door.socket_name());
    ASSERT_THAT(socket, IsOk());
    ASSERT_THAT(ipc::SendUnixMessage(socket->get(), hello, bell), IsOk());
    EXPECT_EQ(IsClosed(socket->get()), !good);
  }
}

TEST_F(StrangeClientTest, UnreadableMemoryOrMissingDoorbellIsRejected) {
  absl::StatusOr<std::unique_ptr<ipc::EventLoop>> loop =
      ipc::EventLoop::Create({});
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
    auto socket = ipc::ConnectAbstract(door.socket_name());
    ASSERT_THAT(socket, IsOk());
    ASSERT_THAT(ipc::SendUnixMessage(socket->get(), hello, bell), IsOk());
    EXPECT_TRUE(IsClosed(socket->get()));
  }
  close(pipe);
}

// A client that completes the handshake and then writes arbitrary data into the
// ring.
class HostileClientTest : public StrangeClientTest {
 protected:
  absl::StatusOr<SameHostLink::Parts> TryToComeIn() {
    async::Promise<SameHostLink::Parts> joined;
    async::Future<SameHostLink::Parts> done = joined.future();
    ConnectSameHost(loop_.get(), Door(), kMaxMessageBytes,
                    [&](absl::StatusOr<SameHostLink::Parts> parts) {
                      joined.Set(std::move(parts));
                    });
    return std::move(done).Wait();
  }
  void ComeIn() {
    loop_ = *ipc::EventLoop::Create({});
    absl::StatusOr<SameHostLink::Parts> parts = TryToComeIn();
    ASSERT_THAT(parts, IsOk());
    parts_ = *std::move(parts);
  }

  void SignalPeer() {
    const uint64_t one = 1;
    ASSERT_EQ(write(parts_.doorbell.get(), &one, sizeof(one)),
              static_cast<ssize_t>(sizeof(one)));
  }

  // Whether the server has closed the link.
  bool HasEnded() { return HasHungUp(parts_); }
  void AwaitEnd() {
    while (!HasEnded()) std::this_thread::yield();
  }

  // Writes when there is space in the ring; returns false if the server closes
  // the link first.
  bool WriteOrEnd(ipc::RingWriter& writer, const std::string& frame) {
    while (writer.Write(frame) != ipc::RingResult::kDone) {
      if (HasEnded()) return false;
      SignalPeer();
      std::this_thread::yield();
    }
    return true;
  }

  LinkHalf& half() { return parts_.memory->layout().to_server; }

  std::unique_ptr<ipc::EventLoop> loop_;
  SameHostLink::Parts parts_;
};

TEST_F(HostileClientTest, AnImpossibleCounterEndsTheLink) {
  ComeIn();
  half().control.written.store(~uint64_t{0});
  SignalPeer();
  AwaitEnd();
  EXPECT_THAT(Call("/t.T/Echo", "still served").Wait(), IsOk());
}

TEST_F(HostileClientTest, AMalformedFrameEndsTheLink) {
  ComeIn();
  ipc::RingWriter writer(&half().control, half().bytes.data(), kRingBytes);
  ASSERT_EQ(writer.Write("\xff\xff\xff"), ipc::RingResult::kDone);
  SignalPeer();
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
  ipc::RingWriter writer(&half().control, half().bytes.data(), kRingBytes);
  ASSERT_EQ(writer.Write(frame.SerializeAsString()), ipc::RingResult::kDone);
  SignalPeer();
  AwaitEnd();
}

TEST_F(HostileClientTest, AChunkBeyondTheHeapEndsTheLink) {
  const std::pair<uint64_t, uint64_t> chunks[] = {{kHeapBytes - 10, 11},
                                                  {kHeapBytes + 1, 1},
                                                  {~uint64_t{0}, 2},
                                                  {64, kHeapBytes}};
  for (const auto& [offset, size] : chunks) {
    ComeIn();
    v1::SameHostFrame frame;
    frame.set_kind(v1::SameHostFrame::KIND_REQUEST);
    frame.set_call(1);
    frame.set_path("/t.T/Echo");
    frame.add_chunks()->set_heap_offset(offset);
    frame.mutable_chunks(0)->set_size(size);
    ipc::RingWriter writer(&half().control, half().bytes.data(), kRingBytes);
    ASSERT_EQ(writer.Write(frame.SerializeAsString()), ipc::RingResult::kDone);
    SignalPeer();
    AwaitEnd();
  }
  EXPECT_THAT(Call("/t.T/Echo", "still served").Wait(), IsOk());
}

TEST_F(HostileClientTest, InvalidAddressesAndExcessiveSizesFail) {
  ComeIn();
  ipc::RingWriter writer(&half().control, half().bytes.data(), kRingBytes);
  LinkHalf& replies = parts_.memory->layout().to_client;
  ipc::RingReader reader(&replies.control, replies.bytes.data(), kRingBytes);
  uint64_t call = 0;
  for (const uint64_t size : {uint64_t{10}, uint64_t{1} << 40, ~uint64_t{0}}) {
    v1::SameHostFrame frame;
    frame.set_kind(v1::SameHostFrame::KIND_REQUEST);
    frame.set_call(++call);
    // A rejected call never reaches the handler.
    frame.set_path(size == 10 ? "/t.T/Echo" : "/t.T/Hold");
    frame.add_chunks()->set_address(8);
    frame.mutable_chunks(0)->set_size(size);
    ASSERT_EQ(writer.Write(frame.SerializeAsString()), ipc::RingResult::kDone);
    SignalPeer();
    std::string bytes;
    while (reader.Read(bytes) == ipc::RingResult::kNothing) {
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

// Replies to rejected calls count too.
TEST_F(HostileClientTest, ClientThatDoesNotReadRepliesLosesItsLink) {
  ComeIn();
  ipc::RingWriter writer(&half().control, half().bytes.data(), kRingBytes);
  v1::SameHostFrame frame;
  frame.set_kind(v1::SameHostFrame::KIND_REQUEST);
  frame.set_path("/t.T/Nothing");
  // About four times as many as may be queued.
  bool going_on = true;
  for (uint64_t i = 1; i < 600'000 && going_on; ++i) {
    frame.set_call(i);
    going_on = WriteOrEnd(writer, frame.SerializeAsString());
  }
  EXPECT_TRUE(HasEnded());
  EXPECT_THAT(Call("/t.T/Echo", "still served").Wait(), IsOk());
}

// Replies whose memory a client does not release use up its half of the quota.
TEST_F(HostileClientTest, MemoryOfUnreadRepliesIsLimited) {
  constexpr size_t kMiB = size_t{1} << 20;
  RestartServer(MakeReplyQuota(/*bytes=*/8 * kMiB, /*max_message_bytes=*/kMiB));
  ComeIn();
  ipc::RingWriter writer(&half().control, half().bytes.data(), kRingBytes);
  LinkHalf& replies = parts_.memory->layout().to_client;
  ipc::RingReader reader(&replies.control, replies.bytes.data(), kRingBytes);
  const std::string memory(2 * kMiB, 'x');
  uint64_t call = 0;
  // Returns the error of an echo of that many bytes.
  const auto echo = [&](size_t bytes) {
    v1::SameHostFrame frame;
    frame.set_kind(v1::SameHostFrame::KIND_REQUEST);
    frame.set_call(++call);
    frame.set_path("/t.T/Echo");
    frame.add_chunks()->set_address(reinterpret_cast<uintptr_t>(memory.data()));
    frame.mutable_chunks(0)->set_size(bytes);
    EXPECT_TRUE(WriteOrEnd(writer, frame.SerializeAsString()));
    SignalPeer();
    std::string read;
    v1::SameHostFrame reply;
    while (reply.kind() != v1::SameHostFrame::KIND_REPLY) {
      while (reader.Read(read) == ipc::RingResult::kNothing) {
        if (HasEnded()) return std::string("the link has ended");
        std::this_thread::yield();
      }
      EXPECT_TRUE(reply.ParseFromString(read));
    }
    EXPECT_EQ(reply.call(), call);
    return reply.error().message();
  };
  const auto release = [&](uint64_t of_call) {
    v1::SameHostFrame frame;
    frame.set_kind(v1::SameHostFrame::KIND_RELEASE);
    frame.set_call(of_call);
    EXPECT_TRUE(WriteOrEnd(writer, frame.SerializeAsString()));
  };
  EXPECT_EQ(echo(kMiB), "");
  EXPECT_EQ(echo(kMiB), "");
  EXPECT_EQ(echo(kMiB), "");
  EXPECT_THAT(echo(2 * kMiB),
              HasSubstr("the reply of 2097152 bytes is dropped"));
  EXPECT_EQ(echo(kMiB), "");
  // Refused before it is served.
  EXPECT_THAT(echo(1), HasSubstr("unread replies"));
  release(1);
  EXPECT_EQ(echo(kMiB), "");
  release(2);
  EXPECT_EQ(echo(1), "");
}

TEST_F(HostileClientTest, AClientHasALimitedNumberOfLinks) {
  net::RaiseOpenFileLimit();
  loop_ = *ipc::EventLoop::Create({});
  // One link belongs to the test's connection; a few may still be in the
  // handshake.
  std::vector<SameHostLink::Parts> links;
  absl::StatusOr<SameHostLink::Parts> parts = TryToComeIn();
  while (parts.ok() && links.size() < 400) {
    links.push_back(*std::move(parts));
    parts = TryToComeIn();
  }
  EXPECT_THAT(parts, StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_GE(links.size(), 255u);
  EXPECT_LE(links.size(), 256u + 64u);
  EXPECT_THAT(Call("/t.T/Echo", "still served").Wait(), IsOk());
}

// Random bytes in the ring: any outcome but a crash is correct.
TEST_F(HostileClientTest, RandomFramesNeverCrashTheServer) {
  async::RandomSource random(11);
  for (int round = 0; round < 30; ++round) {
    ComeIn();
    ipc::RingWriter writer(&half().control, half().bytes.data(), kRingBytes);
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
      if (writer.Write(bytes) != ipc::RingResult::kDone) break;
    }
    SignalPeer();
  }
  EXPECT_THAT(Call("/t.T/Echo", "still served").Wait(), IsOk());
}

// A server that sends unsolicited replies and reads nothing: the client sends a
// release for each reply.
TEST(HostileServerTest, ServerThatDoesNotReadLosesItsLink) {
  absl::StatusOr<std::unique_ptr<ipc::EventLoop>> loop =
      ipc::EventLoop::Create({});
  ASSERT_THAT(loop, IsOk());
  async::Promise<SameHostLink::Parts> accepted;
  async::Future<SameHostLink::Parts> server_side = accepted.future();
  const auto acceptor = SameHostAcceptor::Start(
      loop->get(), kMaxMessageBytes,
      [](const ipc::PeerProcess&, const std::optional<net::Identity>&) {
        return true;
      },
      [&](SameHostLink::Parts parts, std::optional<net::Identity>) {
        accepted.Set(std::move(parts));
      });
  ASSERT_THAT(acceptor, IsOk());
  v1::OpenSameHostRequest request;
  request.set_boot_id(ipc::BootId());
  const auto door = (*acceptor)->Admit(request, std::nullopt);
  ASSERT_THAT(door, IsOk());
  async::Promise<SameHostLink::Parts> joined;
  async::Future<SameHostLink::Parts> client_side = joined.future();
  ConnectSameHost(loop->get(), *door, kMaxMessageBytes,
                  [&](absl::StatusOr<SameHostLink::Parts> parts) {
                    joined.Set(std::move(parts));
                  });
  absl::StatusOr<SameHostLink::Parts> ours = std::move(client_side).Wait();
  ASSERT_THAT(ours, IsOk());
  auto link = std::make_shared<SameHostLink>(*std::move(ours), loop->get());
  link->SetHandler(std::make_shared<LinkClient>(
      link,
      [loop = loop->get()](absl::AnyInvocable<void() &&> closure) {
        loop->Post(std::move(closure));
      },
      absl::ZeroDuration()));
  link->Start();

  absl::StatusOr<SameHostLink::Parts> hostile = std::move(server_side).Wait();
  ASSERT_THAT(hostile, IsOk());
  LinkHalf& half = hostile->memory->layout().to_client;
  ipc::RingWriter writer(&half.control, half.bytes.data(), kRingBytes);
  v1::SameHostFrame frame;
  frame.set_kind(v1::SameHostFrame::KIND_REPLY);
  frame.add_chunks()->set_address(8);
  frame.mutable_chunks(0)->set_size(8);
  bool going_on = true;
  for (uint64_t i = 1; i < 600'000 && going_on; ++i) {
    frame.set_call(i);
    const std::string bytes = frame.SerializeAsString();
    while (going_on && writer.Write(bytes) != ipc::RingResult::kDone) {
      going_on = !HasHungUp(*hostile);
      (*loop)->Wake();
      std::this_thread::yield();
    }
  }
  EXPECT_TRUE(HasHungUp(*hostile));
  link->Close(absl::CancelledError("the test has ended"));
  (*acceptor)->Close();
  (*loop)->Shutdown();
}

}  // namespace
}  // namespace hawser::rpc
