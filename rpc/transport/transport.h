// Interface of the transports that carry messages between workers.

#ifndef HAWSER_RPC_TRANSPORT_TRANSPORT_H_
#define HAWSER_RPC_TRANSPORT_TRANSPORT_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "net/auth/identity.h"
#include "rpc/transport/cancellation.h"
#include "rpc/transport/payload.h"
#include "tensor/memory/storage.h"

namespace hawser::rpc {

// An inbound call. If dropped without a reply, it fails with kUnavailable.
// Reply or Discard is called at most once, in any thread. It may outlive the
// transport, and then its reply is dropped.
class IncomingCall {
 public:
  virtual ~IncomingCall() = default;

  // Moves the request out.
  virtual Payload TakeRequest() = 0;
  // The call's deadline on the monotonic clock; kNever if it has none.
  virtual async::MonotonicTime deadline() const = 0;
  // Cancelled when the caller cancels or its connection breaks.
  virtual const std::shared_ptr<Cancellation>& cancellation() const = 0;
  // The authenticated identity of the caller; nullopt if the transport does not
  // authenticate. kUnauthenticated if the caller's certificate names no worker.
  virtual absl::StatusOr<std::optional<net::Identity>> caller() const = 0;
  // Whether more messages wait for the thread that the handler runs on.
  virtual bool more_waiting() const { return false; }

  // Returns memory for a part of the reply, which the transport then sends
  // without copying it; null if it has none for so many bytes. The caller may
  // see what is written there at any time, and change it. Thread-safe.
  virtual tensor::StoragePtr AllocateReply(size_t) { return nullptr; }

  // Sends the reply. Payloads of an error status are sent with it.
  virtual void Reply(absl::StatusOr<Payload> reply) = 0;
  // Drops the call without a reply: the request is a duplicate of one that will
  // be replied to.
  virtual void Discard() = 0;
};

// A unary method to serve.
struct TransportMethod {
  // "/hawser.v1.WorkerService/Call".
  std::string path;
  // Runs on threads of the transport, possibly several concurrently. Must not
  // block outside a BlockingRegion.
  std::function<void(std::unique_ptr<IncomingCall>)> handler;
  // Whether many concurrent calls are expected.
  bool hot = false;
};

// Target of a connection.
struct ConnectionTarget {
  std::string address;
  // The expected worker, verified if the transport authenticates; empty for any
  // worker of the job.
  std::string worker = {};
  // Roles that it must have proven.
  std::vector<std::string> roles = {};
};

// A connection to one address, established on first use and re-established
// after failures. Thread-safe.
class Connection {
 public:
  using CallId = uint64_t;
  // Runs once per call, even after Close, on a thread of the transport, inside
  // Call or inside AwaitReply, without holding a lock. Must not block outside a
  // BlockingRegion.
  using Done = absl::AnyInvocable<void(absl::StatusOr<Payload>) &&>;

  // Equivalent to Close(kCancelled).
  virtual ~Connection() = default;

  // Errors passed to `done`, besides those replied by the peer:
  //   kUnavailable        the connection failed or broke; reported at once, not
  //                       at the deadline. The peer may have received the
  //                       request.
  //   kDeadlineExceeded   no reply by `deadline`.
  //   kCancelled          Cancel.
  //   kResourceExhausted  a message exceeds the transport's limit.
  //   kUnauthenticated    one end rejected the other's certificate or token.
  // IsNotSent (rpc/errors/not_sent.h) is true for errors of requests that were
  // definitely not sent.
  virtual CallId Call(std::string_view path, Payload request,
                      async::MonotonicTime deadline, Done done) = 0;

  // Ends the call with kCancelled unless it has ended, and notifies the peer.
  virtual void Cancel(CallId call) = 0;

  // For a thread that waits for a consequence of the call: lets it do the
  // transport's work for the call, which avoids a wake-up. Returns when the
  // call has ended, when `stop` returns true, or earlier. May run the `done` of
  // this call, but of no other.
  virtual void AwaitReply(CallId, absl::FunctionRef<bool()> /*stop*/) {}

  // Ends all calls with `status`, which must not be OK, and fails later calls
  // at once.
  virtual void Close(absl::Status status) = 0;
};

// One worker's access to a network. Use of shared memory on one host is
// internal to Connection and IncomingCall; callers and handlers only see
// payloads. Thread-safe.
class Transport {
 public:
  // Calls Shutdown.
  virtual ~Transport() = default;

  // Serves `methods` at `address`. Returns the address for peers, with a port 0
  // replaced. Call at most once.
  virtual absl::StatusOr<std::string> Listen(
      std::string_view address, std::vector<TransportMethod> methods) = 0;

  // Returns a connection without doing I/O. Connections must be dropped before
  // the transport.
  virtual absl::StatusOr<std::shared_ptr<Connection>> Connect(
      const ConnectionTarget& target) = 0;

  // The identity that this end proves to peers, or nullopt if it does not
  // authenticate. If set, every IncomingCall::caller() is set as well.
  virtual std::optional<net::Identity> identity() const { return std::nullopt; }

  // Finds out, without the peer's process, whether its machine accepts
  // connections at `address`: so a peer that is stopped or gets no processor
  // time differs from one that has died or is cut off. Passes to `done`, on a
  // thread of the transport that it must not block, or inside this call:
  //   OK                 it accepts connections.
  //   kUnavailable       it refuses them, or cannot be reached.
  //   kDeadlineExceeded  it does not reply within `timeout`.
  // Drops `done` after Shutdown.
  virtual void Probe(const std::string& address, absl::Duration timeout,
                     absl::AnyInvocable<void(absl::Status) &&> done) = 0;

  // Sets this worker's roles, under which its health can also be queried. Call
  // once, after Listen.
  virtual void SetRoles(const std::vector<std::string>& roles) { (void)roles; }

  // Sets the health status: whether this worker accepts calls. Initially false.
  // Ignored by networks without health checks.
  virtual void SetServing(bool serving) { (void)serving; }

  // Counters for debugging, such as "connections_refused" -> 3. May be called
  // at any time.
  virtual std::map<std::string, int64_t> DebugNumbers() const { return {}; }

  // Stops serving and closes all connections with kCancelled. Returns when no
  // handler or Done is running or will run; must not be called from one of
  // them. Idempotent.
  virtual void Shutdown() = 0;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_TRANSPORT_TRANSPORT_H_
