// Tests of both ends of a link and of the connection that uses one, with a fake
// link.

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/testing/status_matchers.h"
#include "async/thread_pool.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "net/auth/identity.h"
#include "rpc/link/link_client.h"
#include "rpc/link/link_connection.h"
#include "rpc/link/link_server.h"
#include "rpc/link/message_link.h"
#include "rpc/transport/cancellation.h"
#include "rpc/transport/gate.h"
#include "rpc/transport/payload.h"
#include "rpc/transport/transport.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;
using Kind = LinkMessage::Kind;
using Closures = std::deque<absl::AnyInvocable<void() &&>>;

void RunAll(Closures& closures) {
  while (!closures.empty()) {
    absl::AnyInvocable<void()&&> closure = std::move(closures.front());
    closures.pop_front();
    std::move(closure)();
  }
}

// Keeps the messages sent. For one thread.
class FakeLink final : public MessageLink {
 public:
  void SetHandler(std::shared_ptr<LinkHandler> handler) override {
    handler_ = std::move(handler);
  }
  void Start() override { started = true; }
  void Send(LinkMessage message) override {
    if (!closed.has_value()) sent.push_back(std::move(message));
  }
  size_t num_replies_waiting() const override { return replies_waiting; }
  absl::Status CheckRoom() override { return room; }
  bool more_waiting() override { return more; }
  void Forget(uint64_t call) override { forgotten.push_back(call); }
  void PollFor(uint64_t call, absl::Duration spin,
               absl::FunctionRef<bool()> stop) override {
    EXPECT_FALSE(stop());
    polled.push_back(call);
    spins.push_back(spin);
    if (on_poll != nullptr) on_poll();
    stopped = stop();
  }
  absl::Duration max_poll() const override { return absl::Milliseconds(1); }
  void WakeBy(async::MonotonicTime time) override { wakes.push_back(time); }
  void Close(absl::Status status) override {
    if (closed.has_value()) return;
    closed = status;
    handler_->OnEnd(status);
  }
  size_t max_message_bytes() const override { return 1000; }

  // Receives a message, and runs its work.
  void Receive(LinkMessage message) {
    LinkWork work = handler_->OnMessage(std::move(message));
    if (work.run != nullptr) std::move(work.run)();
  }
  // The oldest message that was not taken.
  LinkMessage Take() {
    EXPECT_FALSE(sent.empty());
    LinkMessage message =
        sent.empty() ? LinkMessage() : std::move(sent.front());
    if (!sent.empty()) sent.pop_front();
    return message;
  }
  LinkHandler& handler() { return *handler_; }

  bool started = false;
  std::deque<LinkMessage> sent;
  size_t replies_waiting = 0;
  absl::Status room;
  bool more = false;
  std::vector<uint64_t> forgotten;
  std::vector<uint64_t> polled;
  std::vector<absl::Duration> spins;
  bool stopped = false;
  absl::AnyInvocable<void()> on_poll = nullptr;
  std::vector<async::MonotonicTime> wakes;
  std::optional<absl::Status> closed;

 private:
  std::shared_ptr<LinkHandler> handler_;
};

// The outcome of a call.
using Outcome = std::optional<absl::StatusOr<std::string>>;

Connection::Done Into(Outcome& outcome) {
  return [&outcome](absl::StatusOr<Payload> reply) {
    EXPECT_FALSE(outcome.has_value()) << "replied twice";
    if (reply.ok()) {
      outcome = reply->Flatten();
    } else {
      outcome = reply.status();
    }
  };
}

// --- LinkClient

class LinkClientTest : public testing::Test {
 protected:
  LinkClientTest() { link_->SetHandler(client_); }

  bool Call(Connection::CallId id, Outcome& outcome,
            async::MonotonicTime deadline = async::kNever) {
    Payload request("request");
    Connection::Done done = Into(outcome);
    return client_->Call(id, "/t.T/Echo", request, deadline, done);
  }

  Closures posted_;
  const std::shared_ptr<FakeLink> link_ = std::make_shared<FakeLink>();
  const std::shared_ptr<LinkClient> client_ = std::make_shared<LinkClient>(
      link_,
      [this](absl::AnyInvocable<void() &&> closure) {
        posted_.push_back(std::move(closure));
      },
      absl::Microseconds(50));
};

TEST_F(LinkClientTest, ReplyEndsItsCall) {
  Outcome first;
  Outcome second;
  ASSERT_TRUE(Call(1, first));
  ASSERT_TRUE(Call(2, second));
  EXPECT_TRUE(client_->Expects(2));
  link_->Receive({.kind = Kind::kReply, .call = 2, .payload = Payload("two")});
  EXPECT_EQ(first, std::nullopt);
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->value(), "two");
  EXPECT_FALSE(client_->Expects(2));
  EXPECT_THAT(link_->forgotten, ElementsAre(2));
  link_->Receive(
      {.kind = Kind::kReply, .call = 1, .error = absl::AbortedError("no")});
  EXPECT_THAT(*first, StatusIs(absl::StatusCode::kAborted));
  // A reply that nobody awaits.
  link_->Receive({.kind = Kind::kReply, .call = 1});
  const LinkMessage request = link_->Take();
  EXPECT_EQ(request.kind, Kind::kRequest);
  EXPECT_EQ(request.call, 1u);
  EXPECT_EQ(request.path, "/t.T/Echo");
  EXPECT_EQ(request.payload.Flatten().value(), "request");
}

TEST_F(LinkClientTest, PollingEndsWhenTheWaitDoes) {
  Outcome outcome;
  ASSERT_TRUE(Call(1, outcome));
  bool stop = false;
  link_->on_poll = [&] { stop = true; };
  client_->Await(1, [&] { return stop; });
  EXPECT_THAT(link_->polled, ElementsAre(1));
  EXPECT_TRUE(link_->stopped);
  EXPECT_EQ(outcome, std::nullopt);
}

// As long as the replies that came before, unless they take too long.
TEST_F(LinkClientTest, PollsForAsLongAsRepliesTake) {
  constexpr std::chrono::microseconds kShort{100};
  constexpr std::chrono::milliseconds kLong{2};
  // And the time to copy the request.
  constexpr absl::Duration kLeast = absl::Microseconds(51);
  Connection::CallId id = 0;
  // Returns how long the client polls.
  const auto await = [&](std::chrono::nanoseconds reply_time) {
    Outcome outcome;
    EXPECT_TRUE(Call(++id, outcome));
    const auto start = std::chrono::steady_clock::now();
    link_->on_poll = [&] {
      while (std::chrono::steady_clock::now() < start + reply_time) {
      }
      link_->Receive({.kind = Kind::kReply, .call = id});
    };
    client_->Await(id, [] { return false; });
    return link_->spins.back();
  };
  EXPECT_LT(await(kLong), kLeast);
  EXPECT_LT(await(kShort), kLeast);
  // The machine may interrupt some of them.
  absl::Duration spin;
  do {
    spin = await(kShort);
  } while (spin < kLeast);
  EXPECT_GE(spin, 2 * absl::FromChrono(kShort));
  EXPECT_LE(spin, absl::Milliseconds(1));
  {
    async::ThreadPool pool({.num_threads = 1});
    absl::Duration on_pool;
    pool.Post([&] { on_pool = await(kShort); });
    pool.Shutdown();
    EXPECT_LT(on_pool, kLeast);
  }
  do {
    spin = await(kLong);
  } while (spin >= kLeast);
}

TEST_F(LinkClientTest, DoesNotPollIfPollingIsDisabled) {
  const auto client = std::make_shared<LinkClient>(
      link_, [](absl::AnyInvocable<void() &&>) {}, absl::ZeroDuration());
  link_->SetHandler(client);
  // The second knows how long replies take.
  for (const Connection::CallId id : {1, 2}) {
    Payload request(std::string(100'000, 'x'));
    Connection::Done done = [](absl::StatusOr<Payload>) {};
    ASSERT_TRUE(client->Call(id, "/t.T/Echo", request, async::kNever, done));
    link_->on_poll = [&] {
      link_->Receive({.kind = Kind::kReply, .call = id});
    };
    client->Await(id, [] { return false; });
  }
  EXPECT_THAT(link_->spins,
              ElementsAre(absl::ZeroDuration(), absl::ZeroDuration()));
}

TEST_F(LinkClientTest, CancelledCallTellsThePeer) {
  Outcome outcome;
  ASSERT_TRUE(Call(7, outcome));
  link_->Take();
  client_->Cancel(7);
  EXPECT_FALSE(client_->Expects(7));
  EXPECT_EQ(link_->Take().kind, Kind::kCancel);
  // Not in the cancelling thread.
  EXPECT_EQ(outcome, std::nullopt);
  RunAll(posted_);
  EXPECT_THAT(*outcome, StatusIs(absl::StatusCode::kCancelled));
  client_->Cancel(7);
  EXPECT_THAT(link_->sent, IsEmpty());
}

TEST_F(LinkClientTest, PassedDeadlinesEndCalls) {
  const async::MonotonicTime now;
  const auto later = [now](int64_t seconds) {
    return async::AddDelay(now, absl::Seconds(seconds));
  };
  Outcome first;
  Outcome second;
  Outcome never;
  ASSERT_TRUE(Call(1, first, later(5)));
  ASSERT_TRUE(Call(2, second, later(3)));
  ASSERT_TRUE(Call(3, never));
  EXPECT_THAT(link_->wakes, ElementsAre(later(5), later(3)));
  EXPECT_EQ(client_->OnTime(later(2)), later(3));
  EXPECT_EQ(client_->OnTime(later(3)), later(5));
  RunAll(posted_);
  EXPECT_EQ(first, std::nullopt);
  EXPECT_THAT(*second, StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_EQ(client_->OnTime(later(9)), async::kNever);
  RunAll(posted_);
  EXPECT_THAT(*first, StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_EQ(never, std::nullopt);
  client_->Close(absl::CancelledError("the end"));
  RunAll(posted_);
}

TEST_F(LinkClientTest, EndOfTheLinkEndsAllCalls) {
  Outcome first;
  Outcome second;
  ASSERT_TRUE(Call(1, first));
  ASSERT_TRUE(Call(2, second));
  client_->Close(absl::UnavailableError("lost"));
  EXPECT_THAT(link_->closed,
              Optional(StatusIs(absl::StatusCode::kUnavailable)));
  EXPECT_EQ(posted_.size(), 2u);
  RunAll(posted_);
  EXPECT_THAT(*first, StatusIs(absl::StatusCode::kUnavailable, "lost"));
  EXPECT_THAT(*second, StatusIs(absl::StatusCode::kUnavailable, "lost"));
  EXPECT_TRUE(client_->ended());
  Outcome later;
  EXPECT_FALSE(Call(3, later));
  EXPECT_EQ(later, std::nullopt);
}

// --- LinkServer

class LinkServerTest : public testing::Test {
 protected:
  LinkServerTest() {
    const std::vector<TransportMethod> methods = {
        {.path = "/t.T/Hold",
         .handler = [this](std::unique_ptr<IncomingCall> call) {
           calls_.push_back(std::move(call));
         }}};
    server_ = std::make_shared<LinkServer>(
        link_, std::make_shared<const LinkMethods>(methods),
        net::Identity{.job = "job", .worker = "w1"});
    link_->SetHandler(server_);
  }

  void Request(uint64_t call, const std::string& path = "/t.T/Hold") {
    link_->Receive({.kind = Kind::kRequest,
                    .call = call,
                    .path = path,
                    .payload = Payload("request")});
  }

  const std::shared_ptr<FakeLink> link_ = std::make_shared<FakeLink>();
  std::shared_ptr<LinkServer> server_;
  std::vector<std::unique_ptr<IncomingCall>> calls_;
};

TEST_F(LinkServerTest, HandlerRepliesToTheCall) {
  Request(5);
  ASSERT_EQ(calls_.size(), 1u);
  EXPECT_EQ(calls_[0]->TakeRequest().Flatten().value(), "request");
  EXPECT_EQ(calls_[0]->caller().value()->worker, "w1");
  calls_[0]->Reply(Payload("reply"));
  const LinkMessage reply = link_->Take();
  EXPECT_EQ(reply.kind, Kind::kReply);
  EXPECT_EQ(reply.call, 5u);
  EXPECT_EQ(reply.payload.Flatten().value(), "reply");
}

TEST_F(LinkServerTest, CallsThatCannotBeServedGetErrors) {
  Request(1, "/t.T/None");
  EXPECT_THAT(link_->Take().error, StatusIs(absl::StatusCode::kUnimplemented));
  link_->replies_waiting = size_t{1} << 16;
  Request(2);
  EXPECT_THAT(link_->Take().error,
              StatusIs(absl::StatusCode::kResourceExhausted));
  link_->replies_waiting = 0;
  link_->room = absl::ResourceExhaustedError("unread replies");
  Request(2);
  EXPECT_THAT(link_->Take().error,
              StatusIs(absl::StatusCode::kResourceExhausted, "unread replies"));
  link_->room = absl::OkStatus();
  // The link could not read the request.
  link_->Receive({.kind = Kind::kRequest,
                  .call = 3,
                  .path = "/t.T/Hold",
                  .error = absl::ResourceExhaustedError("too long")});
  EXPECT_THAT(link_->Take().error,
              StatusIs(absl::StatusCode::kResourceExhausted, "too long"));
  EXPECT_THAT(calls_, IsEmpty());
  Request(4);
  calls_[0]->Reply(Payload(std::string(1001, 'x')));
  EXPECT_THAT(link_->Take().error,
              StatusIs(absl::StatusCode::kResourceExhausted));
  Request(5);
  calls_.clear();
  EXPECT_THAT(link_->Take().error, StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(LinkServerTest, CancelledCallGetsNoReply) {
  Request(1);
  Request(2);
  EXPECT_FALSE(calls_[0]->cancellation()->cancelled());
  link_->Receive({.kind = Kind::kCancel, .call = 1});
  EXPECT_TRUE(calls_[0]->cancellation()->cancelled());
  EXPECT_FALSE(calls_[1]->cancellation()->cancelled());
  calls_[0]->Reply(Payload("late"));
  EXPECT_THAT(link_->sent, IsEmpty());
  // Of a reply that was sent before.
  link_->Receive({.kind = Kind::kCancel, .call = 1});
  EXPECT_THAT(link_->forgotten, ElementsAre(1));
  link_->Receive({.kind = Kind::kRelease, .call = 9});
  EXPECT_THAT(link_->forgotten, ElementsAre(1, 9));
}

TEST_F(LinkServerTest, RepeatedNumbersAreIgnored) {
  Request(1);
  Request(1);
  EXPECT_EQ(calls_.size(), 1u);
}

TEST_F(LinkServerTest, EndOfTheLinkCancelsItsCalls) {
  Request(1);
  link_->Close(absl::UnavailableError("lost"));
  EXPECT_TRUE(calls_[0]->cancellation()->cancelled());
  Request(2);
  EXPECT_EQ(calls_.size(), 1u);
}

// --- LinkConnection

// The connection that is used without a link. Keeps its calls.
class FakeBase final : public Connection {
 public:
  CallId Call(std::string_view path, Payload, async::MonotonicTime,
              Done done) override {
    paths.emplace_back(path);
    dones.push_back(std::move(done));
    return 10 + paths.size();
  }
  void Cancel(CallId id) override { cancelled.push_back(id); }
  void AwaitReply(CallId id, absl::FunctionRef<bool()>) override {
    awaited.push_back(id);
  }
  void Close(absl::Status status) override {
    closed = std::move(status);
    for (Done& done : dones) std::move(done)(*closed);
    dones.clear();
  }

  std::vector<std::string> paths;
  std::vector<Done> dones;
  std::vector<CallId> cancelled;
  std::vector<CallId> awaited;
  std::optional<absl::Status> closed;
};

class FakeOpener final : public LinkOpener {
 public:
  void Open(Done done) override { requests.push_back(std::move(done)); }
  void Cancel() override {
    cancelled = true;
    if (on_cancel != nullptr) on_cancel();
  }

  std::vector<Done> requests;
  bool cancelled = false;
  std::function<void()> on_cancel;
};

class LinkConnectionTest : public testing::Test {
 protected:
  explicit LinkConnectionTest(int calls_before_link = 1) {
    auto opener = std::make_unique<FakeOpener>();
    opener_ = opener.get();
    connection_ = std::make_shared<LinkConnection>(
        base_, std::move(opener), gate_,
        LinkConnection::Options{
            .max_request_bytes = 100,
            .calls_before_link = calls_before_link,
            .spin = absl::Microseconds(50),
            .post = [this](absl::AnyInvocable<void() &&> closure) {
              posted_.push_back(std::move(closure));
            }});
  }
  ~LinkConnectionTest() override {
    if (connection_ != nullptr) {
      connection_->Close(absl::CancelledError("the end"));
    }
    RunAll(posted_);
  }

  Connection::CallId Call(size_t bytes = 1) {
    return connection_->Call("/t.T/Echo", Payload(std::string(bytes, 'x')),
                             async::kNever,
                             [this](absl::StatusOr<Payload> reply) {
                               results_.push_back(std::move(reply).status());
                             });
  }
  // Gives the link that was requested to the connection.
  std::shared_ptr<FakeLink> Open() {
    auto link = std::make_shared<FakeLink>();
    std::move(opener_->requests.back())(link);
    EXPECT_TRUE(link->started || connection_ == nullptr);
    return link;
  }

  Closures posted_;
  const std::shared_ptr<FakeBase> base_ = std::make_shared<FakeBase>();
  const std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
  FakeOpener* opener_ = nullptr;
  std::shared_ptr<LinkConnection> connection_;
  std::vector<absl::Status> results_;
};

TEST_F(LinkConnectionTest, CallsUseTheLinkOnceThereIsOne) {
  const Connection::CallId first = Call();
  Call();
  EXPECT_EQ(opener_->requests.size(), 1u);
  EXPECT_EQ(base_->paths.size(), 2u);
  const std::shared_ptr<FakeLink> link = Open();
  const Connection::CallId third = Call();
  EXPECT_EQ(base_->paths.size(), 2u);
  ASSERT_EQ(link->sent.size(), 1u);
  // Longer requests do not.
  const Connection::CallId fourth = Call(101);
  EXPECT_EQ(base_->paths.size(), 3u);
  EXPECT_EQ(opener_->requests.size(), 1u);
  // Operations on a call go where the call went.
  connection_->Cancel(first);
  connection_->AwaitReply(fourth, [] { return false; });
  EXPECT_THAT(base_->cancelled, ElementsAre(11));
  EXPECT_THAT(base_->awaited, ElementsAre(13));
  const uint64_t number = link->sent.front().call;
  link->on_poll = [&] {
    link->Receive({.kind = Kind::kReply, .call = number});
  };
  connection_->AwaitReply(third, [] { return false; });
  EXPECT_THAT(link->polled, ElementsAre(number));
  EXPECT_THAT(results_, ElementsAre(IsOk()));
}

TEST_F(LinkConnectionTest, BrokenLinkIsReplacedAndItsCallsEnd) {
  Call();
  std::shared_ptr<FakeLink> link = Open();
  const Connection::CallId id = Call();
  link->Close(absl::UnavailableError("broken"));
  RunAll(posted_);
  EXPECT_THAT(results_, ElementsAre(StatusIs(absl::StatusCode::kUnavailable)));
  // The next request is for later, as this one was a moment ago.
  Call();
  EXPECT_EQ(base_->paths.size(), 2u);
  // A late cancellation has no effect.
  connection_->Cancel(id);
  EXPECT_THAT(base_->cancelled, IsEmpty());
}

TEST_F(LinkConnectionTest, PeerWithoutLinksIsNotAskedAgain) {
  Call();
  std::move(opener_->requests[0])(absl::UnimplementedError("no links"));
  for (int i = 0; i < 10; ++i) Call();
  EXPECT_EQ(opener_->requests.size(), 1u);
  EXPECT_EQ(base_->paths.size(), 11u);
}

TEST_F(LinkConnectionTest, CloseEndsAllCalls) {
  Call();
  const std::shared_ptr<FakeLink> link = Open();
  Call();
  connection_->Close(absl::UnavailableError("lost"));
  RunAll(posted_);
  EXPECT_TRUE(opener_->cancelled);
  EXPECT_THAT(base_->closed,
              Optional(StatusIs(absl::StatusCode::kUnavailable)));
  EXPECT_THAT(link->closed, Optional(StatusIs(absl::StatusCode::kUnavailable)));
  EXPECT_THAT(results_, ElementsAre(StatusIs(absl::StatusCode::kUnavailable),
                                    StatusIs(absl::StatusCode::kUnavailable)));
}

// The cancellation ends an open stream of gRPC with an error of its own.
TEST_F(LinkConnectionTest, LinkIsClosedBeforeItsOpenerIsCancelled) {
  Call();
  const std::shared_ptr<FakeLink> link = Open();
  opener_->on_cancel = [&] {
    EXPECT_THAT(link->closed,
                Optional(StatusIs(absl::StatusCode::kUnavailable, "lost")));
  };
  connection_->Close(absl::UnavailableError("lost"));
  EXPECT_TRUE(opener_->cancelled);
  opener_->on_cancel = nullptr;
}

TEST_F(LinkConnectionTest, LinkThatOpensAfterCloseIsClosed) {
  Call();
  connection_->Close(absl::UnavailableError("lost"));
  EXPECT_THAT(Open()->closed,
              Optional(StatusIs(absl::StatusCode::kUnavailable, "lost")));
}

TEST_F(LinkConnectionTest, ConnectionMayGoBeforeItsLinkOpens) {
  Call();
  LinkOpener::Done done = std::move(opener_->requests[0]);
  connection_.reset();
  std::move(done)(std::make_shared<FakeLink>());
  EXPECT_THAT(results_, ElementsAre(StatusIs(absl::StatusCode::kCancelled)));
}

class LaterLinkTest : public LinkConnectionTest {
 protected:
  LaterLinkTest() : LinkConnectionTest(/*calls_before_link=*/3) {}
};

TEST_F(LaterLinkTest, LinkIsRequestedByTheThirdCall) {
  Call();
  Call();
  EXPECT_THAT(opener_->requests, IsEmpty());
  Call();
  EXPECT_EQ(opener_->requests.size(), 1u);
}

}  // namespace
}  // namespace hawser::rpc
