// A connection that uses shared memory if possible.

#ifndef HAWSER_RPC_SAME_HOST_CONNECTION_H_
#define HAWSER_RPC_SAME_HOST_CONNECTION_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/mutex.h"
#include "ipc/event_loop.h"
#include "rpc/same_host/client.h"
#include "rpc/same_host/link.h"
#include "rpc/transport/gate.h"
#include "rpc/transport/payload.h"
#include "rpc/transport/transport.h"

namespace hawser::rpc {

// The first call requests a shared-memory link from the peer, over the socket.
// Calls use the socket until there is a link, or if none is possible. When a
// link breaks, its calls end with kUnavailable, and the next call requests
// another one.
class SameHostConnection final
    : public Connection,
      public std::enable_shared_from_this<SameHostConnection> {
 public:
  struct Options {
    size_t max_message_bytes = 0;
    // Polling time of AwaitReply.
    absl::Duration spin;
  };

  // Users of `loop` enter `gate` first; `loop` must live until the gate is
  // closed.
  SameHostConnection(std::shared_ptr<Connection> socket,
                     std::shared_ptr<ipc::EventLoop> loop,
                     std::shared_ptr<Gate> gate, Options options);
  ~SameHostConnection() override;

  CallId Call(std::string_view path, Payload request,
              async::MonotonicTime deadline, Done done) override;
  void Cancel(CallId id) override;
  void AwaitReply(CallId id) override;
  void Close(absl::Status status) override;

 private:
  // Ids of calls through shared memory are odd, those over the socket even.
  static CallId MemoryId(CallId id) { return 2 * id + 1; }
  static CallId SocketId(CallId id) { return 2 * id; }
  static bool IsMemoryId(CallId id) { return id % 2 == 1; }

  // Returns the link if there is one; otherwise requests one if it is time.
  std::shared_ptr<SameHostClient> client();
  // Same, without requesting a link.
  std::shared_ptr<SameHostClient> OpenClient();
  void Ask();
  void OnReply(absl::StatusOr<Payload> reply);
  void OnParts(absl::StatusOr<SameHostLink::Parts> parts);
  void NoteRefusal(const absl::Status& status);

  const std::shared_ptr<Connection> socket_;
  const std::shared_ptr<ipc::EventLoop> loop_;
  const std::shared_ptr<Gate> gate_;
  const Options options_;
  // Last id of calls through shared memory, across successive links, so that a
  // late cancellation for an ended link cannot match a call of the next.
  std::atomic<CallId> last_id_{0};

  async::Mutex mutex_;
  std::optional<absl::Status> closed_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<SameHostClient> client_ ABSL_GUARDED_BY(mutex_);
  // A request for a link is in flight.
  bool asking_ ABSL_GUARDED_BY(mutex_) = false;
  async::MonotonicTime ask_after_ ABSL_GUARDED_BY(mutex_) =
      async::MonotonicTime::min();
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_SAME_HOST_CONNECTION_H_
