// State of a call in flight with which it can be cancelled.

#ifndef HAWSER_RPC_AGENT_OUTBOUND_OUTGOING_CALL_H_
#define HAWSER_RPC_AGENT_OUTBOUND_OUTGOING_CALL_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "async/mutex.h"
#include "async/wait_poller.h"
#include "rpc/transport/cancellation.h"
#include "rpc/transport/transport.h"

namespace hawser::rpc {

// One call of a user or one method call with all its attempts. Cancel may come
// before, while or after the call is handed to a connection. Thread-safe.
class OutgoingCall final : public async::WaitPoller,
                           public std::enable_shared_from_this<OutgoingCall> {
 public:
  void Cancel();
  bool cancelled() const;

  // Cancels this with `parent` until EndAttempt.
  void FollowParent(Cancellation& parent);

  // Attempts are numbered from 1. One is begun, handed to a connection, and
  // ends, perhaps before the handing over is known here.
  uint64_t BeginAttempt();
  void SetAttempt(uint64_t number,
                  const std::shared_ptr<Connection>& connection,
                  Connection::CallId id);
  void EndAttempt(uint64_t number);

  // Connection::AwaitReply of the attempt under way.
  void PollUntil(absl::FunctionRef<bool()> done) override;
  // Whether the calling thread is in PollUntil of this call, so that it waits
  // for nothing else.
  bool IsAwaitedHere() const;

 private:
  struct Attempt {
    std::weak_ptr<Connection> connection;
    Connection::CallId id;
  };

  mutable async::Mutex mutex_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t last_begun_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t last_ended_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<Attempt> attempt_ ABSL_GUARDED_BY(mutex_);
  Cancellation::Registration parent_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_AGENT_OUTBOUND_OUTGOING_CALL_H_
