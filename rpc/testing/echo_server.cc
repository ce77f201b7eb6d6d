#include "rpc/testing/echo_server.h"

#include <chrono>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "rpc/transport/payload.h"

namespace hawser::rpc {

EchoServer::EchoServer(GrpcTransportOptions options, const std::string& address)
    : transport_(std::move(options)) {
  absl::StatusOr<std::string> bound = transport_.Listen(
      address,
      {{.path = kEcho,
        .handler = [this](std::unique_ptr<IncomingCall> call) { Echo(*call); },
        .hot = true},
       {.path = kHold,
        .handler =
            [this](std::unique_ptr<IncomingCall> call) {
              async::MutexLock lock(&mutex_);
              held_.push_back(std::move(call));
              changed_.NotifyAll();
            },
        .hot = false}});
  if (!bound.ok()) {
    ADD_FAILURE() << bound.status();
    return;
  }
  address_ = *std::move(bound);
}

void EchoServer::Echo(IncomingCall& call) {
  Payload request = call.TakeRequest();
  {
    async::MutexLock lock(&mutex_);
    ++num_echoed_;
    // Requests in fragments are assembled in one of Hawser's storages.
    echoed_in_fragments_ =
        request.size() > 0 && request.chunks()[0].storage != nullptr;
  }
  call.Reply(std::move(request));
}

int EchoServer::num_echoed() {
  async::MutexLock lock(&mutex_);
  return num_echoed_;
}

bool EchoServer::echoed_in_fragments() {
  async::MutexLock lock(&mutex_);
  return echoed_in_fragments_;
}

void EchoServer::AwaitHeld(size_t count) {
  async::MutexLock lock(&mutex_);
  while (held_.size() < count) changed_.Wait(&mutex_);
}

bool EchoServer::AwaitHeldUnlessEnded(const async::Future<std::string>& reply) {
  // Notify under the lock, since the waiter may destroy this server.
  const auto ended = std::make_shared<bool>(false);
  reply.OnReady([this, ended](const absl::StatusOr<std::string>&) {
    async::MutexLock lock(&mutex_);
    *ended = true;
    changed_.NotifyAll();
  });
  async::MutexLock lock(&mutex_);
  while (held_.empty() && !*ended) changed_.Wait(&mutex_);
  return !held_.empty();
}

async::Future<std::string> Call(Connection& connection, std::string_view path,
                                std::string request,
                                async::MonotonicTime deadline) {
  async::Promise<std::string> promise;
  async::Future<std::string> future = promise.future();
  connection.Call(
      path, Payload(std::move(request)), deadline,
      [promise = std::move(promise)](absl::StatusOr<Payload> reply) mutable {
        if (!reply.ok()) {
          promise.Set(reply.status());
        } else {
          promise.Set(reply->Flatten());
        }
      });
  return future;
}

void AwaitCallStream(EchoServer& server, Connection& connection) {
  while (server.transport().DebugNumbers()["call_stream_calls"] == 0) {
    EXPECT_TRUE(Call(connection, EchoServer::kEcho, "x").Wait().ok());
  }
}

void AwaitConnected(Connection& connection) {
  const auto call = [&] {
    return Call(connection, "/t.T/None", "").Wait().status();
  };
  const auto start = std::chrono::steady_clock::now();
  absl::Status status = call();
  if (absl::IsUnavailable(status)) {
    EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::seconds(1))
        << status;
  }
  while (absl::IsUnavailable(status)) status = call();
}

}  // namespace hawser::rpc
