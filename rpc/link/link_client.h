// Client end of a link: the calls in flight.

#ifndef HAWSER_RPC_LINK_LINK_CLIENT_H_
#define HAWSER_RPC_LINK_LINK_CLIENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/mutex.h"
#include "async/run_time.h"
#include "rpc/link/message_link.h"
#include "rpc/transport/payload.h"
#include "rpc/transport/transport.h"

namespace hawser::rpc {

// The calls in flight. Thread-safe.
class LinkClient final : public LinkHandler {
 public:
  using CallId = Connection::CallId;
  using Done = Connection::Done;

  // Runs a closure on a thread of the transport.
  using Post = std::function<void(absl::AnyInvocable<void() &&>)>;

  // `spin`: how long Await polls, in addition to the time that the peer needs
  // to copy the request.
  LinkClient(std::weak_ptr<MessageLink> link, Post post, absl::Duration spin)
      : link_(std::move(link)), post_(std::move(post)), spin_(spin) {}

  // As Connection::Call. The caller numbers its calls uniquely, across all
  // links. Returns false, leaving request and `done` unchanged, if the link has
  // ended.
  bool Call(CallId id, std::string_view path, Payload& request,
            async::MonotonicTime deadline, Done& done);
  void Cancel(CallId id);
  // As Connection::AwaitReply. Polls for longer than `spin` if earlier replies
  // that were awaited took longer, but not more than MessageLink::max_poll, and
  // not in a thread with a BlockingObserver.
  void Await(CallId id, absl::FunctionRef<bool()> stop);
  // Ends all calls with `status`, and ends the link.
  void Close(const absl::Status& status);
  // Whether the link has ended and accepts no more calls.
  bool ended();

  LinkWork OnMessage(LinkMessage message) override;
  bool Expects(uint64_t call) override;
  void OnEnd(const absl::Status& status) override;
  async::MonotonicTime OnTime(async::MonotonicTime now) override;

 private:
  struct Waiting {
    Done done;
    async::MonotonicTime deadline;
    // Size of the request.
    size_t bytes = 0;
    // Since when a thread waits for the reply.
    std::optional<async::MonotonicTime> awaited_since = std::nullopt;
  };

  // Removes the call and returns its callback; null if the call is unknown.
  Done Take(CallId id);
  // Same, before the reply arrived; sends the peer a cancellation.
  Done Abandon(CallId id);

  const std::weak_ptr<MessageLink> link_;
  const Post post_;
  const absl::Duration spin_;

  async::Mutex mutex_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_map<CallId, Waiting> calls_ ABSL_GUARDED_BY(mutex_);
  // How long replies are awaited.
  async::RunTime wait_time_;
  absl::btree_set<std::pair<async::MonotonicTime, CallId>> deadlines_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_LINK_LINK_CLIENT_H_
