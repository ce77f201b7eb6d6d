// Fixture of the tests of calls through shared memory.

#ifndef HAWSER_RPC_SAME_HOST_TESTS_SAME_HOST_TEST_FIXTURE_H_
#define HAWSER_RPC_SAME_HOST_TESTS_SAME_HOST_TEST_FIXTURE_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/future.h"
#include "async/mutex.h"
#include "gtest/gtest.h"
#include "net/auth/identity.h"
#include "net/per_peer_quota.h"
#include "rpc/same_host/same_host.h"
#include "rpc/transport/gate.h"
#include "rpc/transport/payload.h"
#include "rpc/transport/transport.h"

namespace hawser::rpc {

inline constexpr char kOpenPath[] = "/hawser.v1.SameHostService/Open";
inline constexpr size_t kMaxMessageBytes = size_t{64} << 20;

// Fake of the socket connection: counts calls and forwards Open.
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
    open().handler(
        std::make_unique<OpenCall>(std::move(request), std::move(done)));
    return 0;
  }
  // Switches to another server.
  void SetOpen(TransportMethod open) {
    async::MutexLock lock(&mutex_);
    open_ = std::move(open);
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

  TransportMethod open() {
    async::MutexLock lock(&mutex_);
    return open_;
  }

  async::Mutex mutex_;
  TransportMethod open_ ABSL_GUARDED_BY(mutex_);
};

// The shared-memory part of one transport.
struct End {
  explicit End(absl::Duration spin = absl::Microseconds(50),
               std::shared_ptr<net::PerPeerQuota> reply_quota = nullptr)
      : host({.max_message_bytes = kMaxMessageBytes,
              .reply_quota = std::move(reply_quota),
              .spin = spin},
             gate) {}
  ~End() { Shutdown(); }

  void Shutdown() {
    host.Stop();
    gate->Close();
    host.Shutdown();
  }

  const std::shared_ptr<Gate> gate = std::make_shared<Gate>();
  SameHost host;
};

// Two connected ends in one process.
class SameHostTest : public testing::Test {
 protected:
  SameHostTest() {
    Serve();
    Connect();
  }
  ~SameHostTest() override {
    connection_->Close(absl::CancelledError("the test has ended"));
    client_->Shutdown();
    server_->Shutdown();
  }

  void Serve() {
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
  }

  // Replaces the server by another one, which the connection detects.
  void RestartServer(std::shared_ptr<net::PerPeerQuota> reply_quota = nullptr) {
    server_->Shutdown();
    server_ =
        std::make_unique<End>(absl::Microseconds(50), std::move(reply_quota));
    Serve();
    socket_->SetOpen(open_);
    Open(*connection_);
  }

  void Connect() {
    socket_ = std::make_shared<FakeSocket>(open_);
    connection_ = client_->host.Wrap(socket_);
    Open(*connection_);
  }

  // Calls use the socket until there is a link.
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

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_SAME_HOST_TESTS_SAME_HOST_TEST_FIXTURE_H_
