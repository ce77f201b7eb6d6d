// Interface of a link that carries the messages of many calls to one peer.

#ifndef HAWSER_RPC_LINK_MESSAGE_LINK_H_
#define HAWSER_RPC_LINK_MESSAGE_LINK_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "rpc/transport/payload.h"
#include "tensor/memory/storage.h"

namespace hawser::rpc {

struct LinkMessage {
  enum class Kind {
    // Client to server.
    kRequest,
    // Server to client.
    kReply,
    // Client to server: the call is cancelled.
    kCancel,
    // Client to server: the memory of the reply may be freed.
    kRelease,
  };
  Kind kind = Kind::kRequest;
  // Number of the call, chosen by the client.
  uint64_t call = 0;
  // For a request.
  std::string path = {};
  async::MonotonicTime deadline = async::kNever;
  // For a request or a reply.
  Payload payload = {};
  // For a reply; OK if there is no error.
  absl::Status error = {};
  // Of a waiting reply, the bytes that the link counts as unread.
  size_t unread_bytes = 0;
};

// Work for a message, to run without locks of the link; null for none.
struct LinkWork {
  uint64_t call = 0;
  absl::AnyInvocable<void()&&> run = nullptr;
};

// Receiver of the messages of a link.
class LinkHandler {
 public:
  virtual ~LinkHandler() = default;

  // Called for one message at a time, in order. Must not block.
  virtual LinkWork OnMessage(LinkMessage message) = 0;
  // Whether a reply to the call is awaited.
  virtual bool Expects(uint64_t call) = 0;
  // Called once, on a thread of the link. Work of earlier messages may still be
  // running.
  virtual void OnEnd(const absl::Status& status) = 0;
  // Handles passed deadlines and returns the next one.
  virtual async::MonotonicTime OnTime(async::MonotonicTime now) = 0;
};

// One end of a connected link: the client calls, the server serves. Its threads
// run the work of messages. Thread-safe.
class MessageLink {
 public:
  virtual ~MessageLink() = default;

  // Sets the receiver of messages. Call once, before anything else.
  virtual void SetHandler(std::shared_ptr<LinkHandler> handler) = 0;
  // Starts receiving messages, until the link ends. Call once.
  virtual void Start() = 0;

  // Sends a message, or queues it if the link is busy. Has no effect after the
  // link has ended.
  virtual void Send(LinkMessage message) = 0;

  // Number of queued replies and releases, of which the peer can cause any
  // number.
  virtual size_t num_replies_waiting() const = 0;

  // kResourceExhausted if the peer should read replies before it makes further
  // calls, because they use too much memory here.
  virtual absl::Status CheckRoom() = 0;

  // Whether received messages wait for a thread. May be called by their work.
  virtual bool more_waiting() = 0;

  // As IncomingCall::AllocateReply.
  virtual tensor::StoragePtr AllocateReply(size_t) { return nullptr; }

  // Frees the memory of the message sent for `call`, which the peer no longer
  // needs. A message that is still queued is not sent.
  virtual void Forget(uint64_t call) = 0;

  // Receives for up to `spin`, or until `stop` returns true, and runs the work
  // of `call`; other work is left to the threads of the link.
  virtual void PollFor(uint64_t call, absl::Duration spin,
                       absl::FunctionRef<bool()> stop) = 0;

  // Longest time for which a thread of the user should call PollFor, if replies
  // take that long. Zero if it only waits there for the threads of the link.
  virtual absl::Duration max_poll() const = 0;

  // Requests a call of LinkHandler::OnTime by `time`.
  virtual void WakeBy(async::MonotonicTime time) = 0;

  // Ends the link at both ends. `status`, which must not be OK, is passed to
  // OnEnd.
  virtual void Close(absl::Status status) = 0;

  virtual size_t max_message_bytes() const = 0;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_LINK_MESSAGE_LINK_H_
