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
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/clock.h"
#include "net/auth/identity.h"
#include "rpc/transport/cancellation.h"
#include "rpc/transport/payload.h"

namespace hawser::rpc {

// One call to be answered. Dropped without an answer it is answered with
// kUnavailable. Reply or Discard is called at most once, in any thread. It may
// outlive the transport, and then answers nothing.
class IncomingCall {
 public:
  virtual ~IncomingCall() = default;

  // The request, which is then gone from here.
  virtual Payload TakeRequest() = 0;
  // When the caller gives up, on the monotonic clock; kNever if it does not.
  virtual async::MonotonicTime deadline() const = 0;
  // Set when the caller gave up or its connection broke.
  virtual const std::shared_ptr<Cancellation>& cancellation() const = 0;
  // Who calls, as it has proven; nothing where the transport does not know.
  // kUnauthenticated if what it has shown names nobody.
  virtual absl::StatusOr<std::optional<net::Identity>> caller() const = 0;

  // Payloads of an error status travel with it.
  virtual void Reply(absl::StatusOr<Payload> reply) = 0;
  // Answers nothing: the request is a copy of one that is being answered.
  virtual void Discard() = 0;
};

// One unary method that is served.
struct TransportMethod {
  // "/hawser.v1.WorkerService/Call".
  std::string path;
  // Runs on a thread of the transport, which it must not block outside a
  // BlockingRegion, and in several at once.
  std::function<void(std::unique_ptr<IncomingCall>)> handler;
  // Whether many calls at once are to be expected.
  bool hot = false;
};

// What a connection leads to.
struct ConnectionTarget {
  std::string address;
  // The worker that must be there, where the transport can tell; any of the
  // job, if empty.
  std::string worker = {};
  // What it must have proven to be, perhaps among others.
  std::vector<std::string> roles = {};
};

// A way to one address, connected when first used and again after it broke.
// Thread-safe.
class Connection {
 public:
  using CallId = uint64_t;
  // Runs once per call, also after Close, on a thread of the transport, in Call
  // itself or in AwaitReply, no lock held; it must not block outside a
  // BlockingRegion.
  using Done = absl::AnyInvocable<void(absl::StatusOr<Payload>) &&>;

  // As Close(kCancelled).
  virtual ~Connection() = default;

  // Errors given to `done`, besides what the peer answers:
  //   kUnavailable        no connection, or it broke: at once, not at the
  //                       deadline. The peer may have got the request.
  //   kDeadlineExceeded   no answer by `deadline`.
  //   kCancelled          Cancel.
  //   kResourceExhausted  a message exceeds the transport's limit.
  //   kUnauthenticated    one end does not accept the other's certificate or
  //                       token.
  // Where the request surely did not leave, IsNotSent (rpc/errors/not_sent.h)
  // says so.
  virtual CallId Call(std::string_view path, Payload request,
                      async::MonotonicTime deadline, Done done) = 0;

  // Lets the call end with kCancelled if it has not ended, and tells the peer.
  virtual void Cancel(CallId call) = 0;

  // For a thread that has nothing to do until the call has ended: takes part in
  // the transport's work on it, which saves waking this thread up. Returns when
  // it has ended, or earlier. May run its `done`, of no other call.
  virtual void AwaitReply(CallId) {}

  // Ends all calls with `status`, not OK, and each later one at once.
  virtual void Close(absl::Status status) = 0;
};

// One worker's access to a network. Shared memory of one host is a matter
// between Connection and IncomingCall: callers and handlers see payloads.
// Thread-safe.
class Transport {
 public:
  // Does Shutdown.
  virtual ~Transport() = default;

  // Serves `methods` at `address` and returns the address at which others
  // reach it, in which a port 0 is replaced. At most once.
  virtual absl::StatusOr<std::string> Listen(
      std::string_view address, std::vector<TransportMethod> methods) = 0;

  // Does no input or output. Connections must be dropped before the transport.
  virtual absl::StatusOr<std::shared_ptr<Connection>> Connect(
      const ConnectionTarget& target) = 0;

  // Whom this end proves to be to others; nothing where it proves nothing. If
  // there is something, so is there in each IncomingCall::caller().
  virtual std::optional<net::Identity> identity() const { return std::nullopt; }

  // What this worker is for, of which its health may be asked as well; once,
  // after Listen.
  virtual void SetRoles(const std::vector<std::string>& roles) { (void)roles; }

  // Tells those that ask for this worker's health whether it takes calls: no,
  // until told otherwise. Not every network has such.
  virtual void SetServing(bool serving) { (void)serving; }

  // What it did and holds, for people: "connections_refused" -> 3. Any time.
  virtual std::map<std::string, int64_t> DebugNumbers() const { return {}; }

  // Stops serving and closes all connections with kCancelled. Returns when no
  // handler and no Done is running or will run; so not from one of them.
  // Idempotent.
  virtual void Shutdown() = 0;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_TRANSPORT_TRANSPORT_H_
