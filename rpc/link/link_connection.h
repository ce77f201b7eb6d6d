// A connection whose calls use a link if there is one.

#ifndef HAWSER_RPC_LINK_LINK_CONNECTION_H_
#define HAWSER_RPC_LINK_LINK_CONNECTION_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/mutex.h"
#include "rpc/link/link_client.h"
#include "rpc/link/message_link.h"
#include "rpc/transport/gate.h"
#include "rpc/transport/payload.h"
#include "rpc/transport/transport.h"

namespace hawser::rpc {

// Opens links to the peer of one connection. Thread-safe.
class LinkOpener {
 public:
  // Receives a link that is connected but not started. Runs at most once, on a
  // thread of the transport or in Open; not if the transport ends first.
  using Done =
      absl::AnyInvocable<void(absl::StatusOr<std::shared_ptr<MessageLink>>) &&>;

  virtual ~LinkOpener() = default;

  // Requests a link from the peer.
  //
  //   kFailedPrecondition, kUnimplemented  the peer has no links for this
  //                                        client.
  //   Other errors are temporary.
  virtual void Open(Done done) = 0;
  // Ends a request in progress; `done` may not run. Later ones are ignored.
  virtual void Cancel() = 0;
};

// After some calls requests a link from the peer. Calls use `base` until there
// is a link, or if none is possible. When a link breaks, its calls end with
// kUnavailable, and the next call requests another one.
class LinkConnection final
    : public Connection,
      public std::enable_shared_from_this<LinkConnection> {
 public:
  struct Options {
    // Longer requests use `base`.
    size_t max_request_bytes = 0;
    // Number of calls before a link is requested, the last of them included.
    int calls_before_link = 1;
    // Polling time of AwaitReply.
    absl::Duration spin;
    // Runs a closure on a thread of the transport.
    LinkClient::Post post;
  };

  // Users of the threads of links enter `gate` first; the threads must live
  // until the gate is closed.
  LinkConnection(std::shared_ptr<Connection> base,
                 std::unique_ptr<LinkOpener> opener, std::shared_ptr<Gate> gate,
                 Options options);
  ~LinkConnection() override;

  CallId Call(std::string_view path, Payload request,
              async::MonotonicTime deadline, Done done) override;
  void Cancel(CallId id) override;
  void AwaitReply(CallId id, absl::FunctionRef<bool()> stop) override;
  void Close(absl::Status status) override;

 private:
  // Ids of calls through links are odd, the others even.
  static CallId LinkId(CallId id) { return 2 * id + 1; }
  static CallId BaseId(CallId id) { return 2 * id; }
  static bool IsLinkId(CallId id) { return id % 2 == 1; }

  // Returns the link if there is one; otherwise requests one if it is time.
  std::shared_ptr<LinkClient> client();
  // Same, without requesting a link.
  std::shared_ptr<LinkClient> OpenClient();
  void OnLink(absl::StatusOr<std::shared_ptr<MessageLink>> link);

  const std::shared_ptr<Connection> base_;
  const std::unique_ptr<LinkOpener> opener_;
  const std::shared_ptr<Gate> gate_;
  const Options options_;
  // Last id of calls through links, across successive links, so that a late
  // cancellation for an ended link cannot match a call of the next.
  std::atomic<CallId> last_id_{0};

  async::Mutex mutex_;
  std::optional<absl::Status> closed_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<LinkClient> client_ ABSL_GUARDED_BY(mutex_);
  int num_calls_ ABSL_GUARDED_BY(mutex_) = 0;
  // A request for a link is in flight.
  bool opening_ ABSL_GUARDED_BY(mutex_) = false;
  async::MonotonicTime open_after_ ABSL_GUARDED_BY(mutex_) =
      async::MonotonicTime::min();
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_LINK_LINK_CONNECTION_H_
