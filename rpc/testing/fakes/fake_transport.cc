#include "rpc/testing/fakes/fake_transport.h"

#include <utility>

namespace hawser::rpc {

void FakeCall::Reply(absl::StatusOr<Payload> reply) {
  if (ended()) return;
  // The callback may look at this call.
  Connection::Done done = std::exchange(done_, nullptr);
  std::move(done)(std::move(reply));
}

FakeConnection::~FakeConnection() {
  Close(absl::CancelledError("the connection was dropped"));
}

Connection::CallId FakeConnection::Call(std::string_view path, Payload request,
                                        async::MonotonicTime deadline,
                                        Done done) {
  const auto call = std::make_shared<FakeCall>(path, std::move(request),
                                               deadline, std::move(done));
  calls_.push_back(call);
  const CallId id = calls_.size() - 1;
  transport_.calls_.push_back(call);
  if (!closed_.ok()) call->Fail(closed_);
  return id;
}

void FakeConnection::Cancel(CallId call) {
  const std::shared_ptr<FakeCall> cancelled = calls_[call];
  if (cancelled->ended()) return;
  cancelled->cancelled_ = true;
  cancelled->Fail(absl::CancelledError("the call was cancelled"));
}

void FakeConnection::AwaitReply(CallId call, absl::FunctionRef<bool()>) {
  const std::shared_ptr<FakeCall> awaited = calls_[call];
  awaited->awaited_ = true;
  if (awaited->awaited_reply_.has_value()) {
    awaited->Reply(*std::exchange(awaited->awaited_reply_, std::nullopt));
  }
}

void FakeConnection::Close(absl::Status status) {
  if (!closed_.ok()) return;
  closed_ = std::move(status);
  // A callback may make further calls, which fail at once.
  for (size_t i = 0; i < calls_.size(); ++i) {
    const std::shared_ptr<FakeCall> call = calls_[i];
    call->Fail(closed_);
  }
}

std::shared_ptr<FakeCall> FakeTransport::TakeCall() {
  if (calls_.empty()) return nullptr;
  std::shared_ptr<FakeCall> call = std::move(calls_.front());
  calls_.pop_front();
  return call;
}

absl::StatusOr<std::string> FakeTransport::Listen(
    std::string_view address, std::vector<TransportMethod>) {
  return std::string(address);
}

absl::StatusOr<std::shared_ptr<Connection>> FakeTransport::Connect(
    const ConnectionTarget& target) {
  if (!refused_.ok()) return refused_;
  auto connection = std::make_shared<FakeConnection>(this);
  targets_.push_back(target);
  connections_.push_back(connection);
  return connection;
}

void FakeTransport::Probe(const std::string& address, absl::Duration,
                          absl::AnyInvocable<void(absl::Status) &&> done) {
  std::move(done)(
      absl::UnavailableError("cannot connect to " + address + ": refused"));
}

void FakeTransport::Shutdown() {
  RefuseConnections(absl::CancelledError("the transport was shut down"));
  for (const std::weak_ptr<FakeConnection>& weak : connections_) {
    if (auto connection = weak.lock()) {
      connection->Close(absl::CancelledError("the transport was shut down"));
    }
  }
}

}  // namespace hawser::rpc
