// A connection that goes through memory where it can.

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

// With the first call asks the peer, over the socket, for a way through memory.
// Until there is one, and where there is none, calls go over the socket. When
// one breaks, its calls end with kUnavailable, and the next call asks anew.
class SameHostConnection final
    : public Connection,
      public std::enable_shared_from_this<SameHostConnection> {
 public:
  struct Options {
    size_t max_message_bytes = 0;
    // How long AwaitReply polls.
    absl::Duration spin;
  };

  // `gate` is passed by whatever uses `loop`, which outlives its closing.
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
  // Calls of the two ways have ids of their own: odd ones go through memory.
  static CallId MemoryId(CallId id) { return 2 * id + 1; }
  static CallId SocketId(CallId id) { return 2 * id; }
  static bool IsMemoryId(CallId id) { return id % 2 == 1; }

  // The way through memory, if there is one now; asks for one if it is time.
  std::shared_ptr<SameHostClient> client();
  // The same, without asking.
  std::shared_ptr<SameHostClient> OpenClient();
  void Ask();
  void OnReply(absl::StatusOr<Payload> reply);
  void OnParts(absl::StatusOr<SameHostLink::Parts> parts);
  void NoteRefusal(const absl::Status& status);

  const std::shared_ptr<Connection> socket_;
  const std::shared_ptr<ipc::EventLoop> loop_;
  const std::shared_ptr<Gate> gate_;
  const Options options_;
  // Of calls through memory, of all clients one after the other: who cancels a
  // call of one that has ended must not mean a call of the next.
  std::atomic<CallId> last_id_{0};

  async::Mutex mutex_;
  std::optional<absl::Status> closed_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<SameHostClient> client_ ABSL_GUARDED_BY(mutex_);
  // An answer is awaited.
  bool asking_ ABSL_GUARDED_BY(mutex_) = false;
  async::MonotonicTime ask_after_ ABSL_GUARDED_BY(mutex_) =
      async::MonotonicTime::min();
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_SAME_HOST_CONNECTION_H_
