// Tests in which one of two processes with shared memory ends, or stalls, at an
// arbitrary moment.

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/future.h"
#include "async/random_source.h"
#include "async/testing/nightly.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipc/event_loop.h"
#include "ipc/peer_process.h"
#include "proto/same_host.pb.h"
#include "rpc/link/link_client.h"
#include "rpc/link/link_server.h"
#include "rpc/same_host/handshake.h"
#include "rpc/same_host/tests/filesystem_footprint.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::IsEmpty;
using Clock = std::chrono::steady_clock;

constexpr size_t kMaxMessageBytes = size_t{256} << 20;
constexpr size_t kLarge = size_t{8} << 20;
// Time limit for calls that would otherwise never end; generous, for overloaded
// machines.
constexpr std::chrono::seconds kAtOnce(20);

// Serves "/t.T/Size", which reads the whole request, and "/t.T/Large", which
// returns a large reply.
class Serving {
 public:
  Serving() : loop_(*ipc::EventLoop::Create({})) {
    std::vector<TransportMethod> methods;
    methods.push_back(
        {"/t.T/Size", [](std::unique_ptr<IncomingCall> call) {
           absl::StatusOr<std::string> bytes = call->TakeRequest().Flatten();
           call->Reply(bytes.ok() ? absl::StatusOr<Payload>(
                                        Payload(std::to_string(bytes->size())))
                                  : bytes.status());
         }});
    methods.push_back({"/t.T/Large", [](std::unique_ptr<IncomingCall> call) {
                         call->Reply(Payload(std::string(kLarge, 'x')));
                       }});
    methods_ = std::make_shared<const LinkMethods>(methods);
    acceptor_ = *SameHostAcceptor::Start(
        loop_.get(), kMaxMessageBytes,
        [](const ipc::PeerProcess&, const std::optional<net::Identity>&) {
          return true;
        },
        [this](SameHostLink::Parts parts, std::optional<net::Identity>) {
          auto link =
              std::make_shared<SameHostLink>(std::move(parts), loop_.get());
          link->SetHandler(
              std::make_shared<LinkServer>(link, methods_, std::nullopt));
          link->Start();
        });
  }
  ~Serving() {
    acceptor_->Close();
    loop_->Shutdown();
  }

  v1::OpenSameHostReply Door() {
    v1::OpenSameHostRequest request;
    request.set_boot_id(ipc::BootId());
    return acceptor_->Admit(request, std::nullopt).value();
  }

 private:
  const std::unique_ptr<ipc::EventLoop> loop_;
  std::shared_ptr<const LinkMethods> methods_;
  std::shared_ptr<SameHostAcceptor> acceptor_;
};

class Calling {
 public:
  explicit Calling(const v1::OpenSameHostReply& door)
      : loop_(*ipc::EventLoop::Create({})) {
    async::Promise<void> joined;
    const async::Future<void> done = joined.future();
    ConnectSameHost(loop_.get(), door, kMaxMessageBytes,
                    [&](absl::StatusOr<SameHostLink::Parts> parts) {
                      const absl::Status status = parts.status();
                      if (parts.ok()) Join(*std::move(parts));
                      joined.Set(status);
                    });
    status_ = done.Wait();
  }
  ~Calling() {
    if (client_ != nullptr) client_->Close(absl::CancelledError("the end"));
    loop_->Shutdown();
  }

  const absl::Status& status() const { return status_; }

  absl::StatusOr<std::string> Call(std::string_view path, Payload request,
                                   async::MonotonicTime deadline) {
    auto promise = std::make_shared<async::Promise<std::string>>();
    async::Future<std::string> future = promise->future();
    Connection::Done done = [promise](absl::StatusOr<Payload> reply) {
      promise->Set(reply.ok() ? reply->Flatten()
                              : absl::StatusOr<std::string>(reply.status()));
    };
    const Connection::CallId id = ++last_id_;
    if (!client_->Call(id, path, request, deadline, done)) {
      return absl::UnavailableError("the link has ended");
    }
    return std::move(future).Wait();
  }

 private:
  void Join(SameHostLink::Parts parts) {
    link_ = std::make_shared<SameHostLink>(std::move(parts), loop_.get());
    client_ = std::make_shared<LinkClient>(
        link_,
        [loop = loop_.get()](absl::AnyInvocable<void() &&> closure) {
          loop->Post(std::move(closure));
        },
        absl::Microseconds(50));
    link_->SetHandler(client_);
    link_->Start();
  }

  const std::unique_ptr<ipc::EventLoop> loop_;
  absl::Status status_;
  std::atomic<Connection::CallId> last_id_ = 0;
  std::shared_ptr<SameHostLink> link_;
  std::shared_ptr<LinkClient> client_;
};

// A child process that runs `main`, with pipes in both directions. Must be
// forked while this process has only one thread.
class Child {
 public:
  template <class F>
  explicit Child(F main) {
    int to[2], from[2];
    if (pipe(to) != 0 || pipe(from) != 0) std::abort();
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      main(to[0], from[1]);
      _exit(0);
    }
    close(to[0]);
    close(from[1]);
    in_ = to[1];
    out_ = from[0];
  }
  ~Child() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    close(in_);
    close(out_);
  }

  void Signal(int signal) const { kill(pid_, signal); }
  // Stops the process; returns when all its threads have stopped.
  void Stop() const {
    Signal(SIGSTOP);
    int status = 0;
    ASSERT_EQ(waitpid(pid_, &status, WUNTRACED), pid_);
    ASSERT_TRUE(WIFSTOPPED(status));
  }
  void Reap() const { waitpid(pid_, nullptr, 0); }
  pid_t pid() const { return pid_; }
  int in() const { return in_; }
  int out() const { return out_; }

 private:
  pid_t pid_ = 0;
  int in_ = 0;
  int out_ = 0;
};

void SendDoor(int fd, const v1::OpenSameHostReply& door) {
  const std::string bytes = door.SerializeAsString();
  const auto size = static_cast<uint32_t>(bytes.size());
  if (write(fd, &size, sizeof(size)) != sizeof(size) ||
      write(fd, bytes.data(), size) != static_cast<ssize_t>(size)) {
    std::abort();
  }
}

v1::OpenSameHostReply ReceiveDoor(int fd) {
  uint32_t size = 0;
  if (read(fd, &size, sizeof(size)) != sizeof(size)) std::abort();
  std::string bytes(size, '\0');
  if (read(fd, bytes.data(), size) != static_cast<ssize_t>(size)) std::abort();
  v1::OpenSameHostReply door;
  if (!door.ParseFromString(bytes)) std::abort();
  return door;
}

void ServeUntilKilled(int, int out) {
  Serving serving;
  SendDoor(out, serving.Door());
  while (true) pause();
}

// Sends large messages in a loop.
void CallUntilKilled(int in, int out) {
  Calling calling(ReceiveDoor(in));
  Payload request(std::string(kLarge, 'x'));
  for (int i = 0;; ++i) {
    (void)calling.Call("/t.T/Size", request, async::kNever);
    if (i == 0 && write(out, "x", 1) != 1) std::abort();
  }
}

void AwaitByte(int fd) {
  char byte = 0;
  ASSERT_EQ(read(fd, &byte, 1), 1);
}

class ProcessDeathTest : public testing::TestWithParam<int> {};

// Kills at moments spread over the duration of a call, with large messages in
// transit in both directions.
TEST_P(ProcessDeathTest, CallsOfAKilledServerEndAtOnce) {
  Child server(ServeUntilKilled);
  Calling calling(ReceiveDoor(server.out()));
  ASSERT_THAT(calling.status(), IsOk());
  const Payload request(std::string(kLarge, 'x'));
  ASSERT_THAT(calling.Call("/t.T/Size", request, async::kNever),
              IsOkAndHolds(std::to_string(kLarge)));
  std::thread killer([&] {
    async::RandomSource random(static_cast<uint64_t>(GetParam()));
    const Clock::time_point at =
        Clock::now() + std::chrono::microseconds(random.Below(20'000));
    while (Clock::now() < at) std::this_thread::yield();
    server.Signal(SIGKILL);
    server.Reap();
  });
  absl::StatusOr<std::string> reply;
  Clock::time_point last;
  int calls = 0;
  do {
    last = Clock::now();
    reply = calls++ % 2 == 0
                ? calling.Call("/t.T/Size", request, async::kNever)
                : calling.Call("/t.T/Large", Payload("x"), async::kNever);
    // A reply must be complete.
    if (reply.ok()) {
      EXPECT_TRUE(*reply == std::to_string(kLarge) ||
                  *reply == std::string(kLarge, 'x'));
    }
  } while (reply.ok());
  EXPECT_THAT(reply, StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_LT(Clock::now() - last, kAtOnce);
  killer.join();
}

TEST_P(ProcessDeathTest, KilledClientDoesNotAffectTheServer) {
  // Fork before this process has threads.
  Child client(CallUntilKilled);
  Serving serving;
  SendDoor(client.in(), serving.Door());
  AwaitByte(client.out());
  // Neither end has files that its death could leave behind.
  EXPECT_THAT(FilesystemFootprintOf(client.pid()), IsEmpty());
  EXPECT_THAT(FilesystemFootprintOf(getpid()), IsEmpty());
  async::RandomSource random(static_cast<uint64_t>(GetParam()));
  const Clock::time_point at =
      Clock::now() + std::chrono::microseconds(random.Below(20'000));
  while (Clock::now() < at) std::this_thread::yield();
  client.Signal(SIGKILL);
  client.Reap();
  Calling calling(serving.Door());
  ASSERT_THAT(calling.status(), IsOk());
  EXPECT_THAT(calling.Call("/t.T/Size", Payload("four"), async::kNever),
              IsOkAndHolds("4"));
}

INSTANTIATE_TEST_SUITE_P(Moments, ProcessDeathTest,
                         testing::Range(0, async::NightlyOr(1000, 10)));

TEST(ProcessStopTest, CallsOfAStoppedServerEndAtTheirDeadlines) {
  Child server(ServeUntilKilled);
  Calling calling(ReceiveDoor(server.out()));
  ASSERT_THAT(calling.status(), IsOk());
  ASSERT_THAT(calling.Call("/t.T/Size", Payload("x"), async::kNever), IsOk());
  server.Stop();
  const Clock::time_point start = Clock::now();
  EXPECT_THAT(calling.Call("/t.T/Size", Payload(std::string(kLarge, 'x')),
                           start + std::chrono::milliseconds(200)),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_LT(Clock::now() - start, kAtOnce);
  // The server resumes; cancelled calls do not run on changed bytes.
  server.Signal(SIGCONT);
  EXPECT_THAT(calling.Call("/t.T/Size", Payload("four"), async::kNever),
              IsOkAndHolds("4"));
}

}  // namespace
}  // namespace hawser::rpc
