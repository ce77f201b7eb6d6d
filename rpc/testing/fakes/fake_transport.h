// Transport for unit tests, whose calls a test replies to.

#ifndef HAWSER_RPC_TESTING_FAKES_FAKE_TRANSPORT_H_
#define HAWSER_RPC_TESTING_FAKES_FAKE_TRANSPORT_H_

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/clock.h"
#include "rpc/transport/payload.h"
#include "rpc/transport/transport.h"

namespace hawser::rpc {

class FakeTransport;

// A call that was handed to a FakeConnection. For one thread.
class FakeCall {
 public:
  FakeCall(std::string_view path, Payload request,
           async::MonotonicTime deadline, Connection::Done done)
      : path_(path),
        request_(std::move(request)),
        deadline_(deadline),
        done_(std::move(done)) {}
  FakeCall(const FakeCall&) = delete;
  FakeCall& operator=(const FakeCall&) = delete;

  const std::string& path() const { return path_; }
  const Payload& request() const { return request_; }
  async::MonotonicTime deadline() const { return deadline_; }

  // Whether its caller cancelled it while it was in flight.
  bool cancelled() const { return cancelled_; }
  // Whether its caller waited in Connection::AwaitReply.
  bool awaited() const { return awaited_; }
  bool ended() const { return done_ == nullptr; }

  // Ends the call. Has no effect on a call that has ended.
  void Reply(absl::StatusOr<Payload> reply);
  void Fail(absl::Status status) { Reply(std::move(status)); }
  // Ends the call when its caller waits in Connection::AwaitReply, inside that.
  void ReplyWhenAwaited(Payload reply) { awaited_reply_ = std::move(reply); }

 private:
  friend class FakeConnection;

  const std::string path_;
  const Payload request_;
  const async::MonotonicTime deadline_;
  Connection::Done done_;
  bool cancelled_ = false;
  bool awaited_ = false;
  std::optional<Payload> awaited_reply_;
};

// Keeps its calls until the test ends them, or the caller cancels them.
class FakeConnection final : public Connection {
 public:
  // `transport` must outlive the connection.
  explicit FakeConnection(FakeTransport* transport) : transport_(*transport) {}
  ~FakeConnection() override;

  CallId Call(std::string_view path, Payload request,
              async::MonotonicTime deadline, Done done) override;
  void Cancel(CallId call) override;
  void AwaitReply(CallId call, absl::FunctionRef<bool()> stop) override;
  void Close(absl::Status status) override;

 private:
  FakeTransport& transport_;
  // All calls; the id is the index.
  std::vector<std::shared_ptr<FakeCall>> calls_;
  absl::Status closed_;
};

// Opens FakeConnections; does not serve. For one thread.
class FakeTransport final : public Transport {
 public:
  FakeTransport() = default;
  ~FakeTransport() override { Shutdown(); }

  // Returns the oldest call that was not taken; null if there is none.
  std::shared_ptr<FakeCall> TakeCall();
  // Calls made and not taken.
  size_t num_calls() const { return calls_.size(); }

  // The targets of all connections ever opened.
  const std::vector<ConnectionTarget>& targets() const { return targets_; }
  // Later attempts to open a connection fail with `status`.
  void RefuseConnections(absl::Status status) { refused_ = std::move(status); }

  absl::StatusOr<std::string> Listen(
      std::string_view address, std::vector<TransportMethod> methods) override;
  absl::StatusOr<std::shared_ptr<Connection>> Connect(
      const ConnectionTarget& target) override;
  // Reports a refused connection.
  void Probe(const std::string& address, absl::Duration timeout,
             absl::AnyInvocable<void(absl::Status) &&> done) override;
  void Shutdown() override;

 private:
  friend class FakeConnection;

  std::deque<std::shared_ptr<FakeCall>> calls_;
  std::vector<ConnectionTarget> targets_;
  std::vector<std::weak_ptr<FakeConnection>> connections_;
  absl::Status refused_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_TESTING_FAKES_FAKE_TRANSPORT_H_
