// The caller's end of a stream, its types hidden.

#ifndef HAWSER_RPC_STREAM_STREAM_SOURCE_H_
#define HAWSER_RPC_STREAM_STREAM_SOURCE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/clock.h"
#include "async/future.h"
#include "async/mutex.h"
#include "proto/stream.pb.h"
#include "rpc/agent/agent.h"
#include "rpc/identity/worker_info.h"
#include "rpc/stream/stream_sink.h"
#include "rpc/transport/cancellation.h"

namespace hawser::rpc {

struct StreamOptions {
  // As CallOptions::timeout, over the whole stream.
  std::optional<absl::Duration> timeout = std::nullopt;
  // How many values may be under way, and how many the callee holds, at once;
  // 1 to 64.
  int window = 4;
};

// Asks for the values of one stream, a window ahead of those taken, and hands
// them out in order. Thread-safe.
//
// The agent outlives it.
class StreamSource : public std::enable_shared_from_this<StreamSource> {
 public:
  // Gets a value, none at the end.
  using Done =
      absl::AnyInvocable<void(absl::StatusOr<std::optional<StreamItem>>) &&>;

  // Starts the function. kInvalidArgument for a wrong window or timeout;
  // otherwise errors come with the first value.
  static absl::StatusOr<std::shared_ptr<StreamSource>> Open(
      Agent& agent, const Destination& to, const StreamOptions& options,
      std::string_view function, std::string_view signature,
      absl::FunctionRef<absl::Status(Encoder&)> encode);

  StreamSource(Agent& agent, WorkerInfo writer, uint64_t stream, int window,
               async::MonotonicTime deadline);

  Agent& agent() const { return agent_; }
  const WorkerInfo& writer() const { return writer_; }

  // `done` runs once, when the value is there, in order of the calls, in this
  // call or in a thread of the agent.
  void Next(Done done);

  // Gives the rest up: `status` is what later values are. Idempotent.
  void Close(absl::Status status);

 private:
  using Reply = Message<v1::StreamNextReply>;
  // What is done once the lock is released.
  struct Work {
    std::vector<std::pair<Done, absl::StatusOr<std::optional<StreamItem>>>>
        deliveries;
    // Numbers of the values to ask for, and what to acknowledge.
    std::vector<uint64_t> requests;
    uint64_t acknowledged = 0;
    std::vector<async::Future<Reply>> given_up;
    bool close = false;
  };

  void FollowCurrentCall();
  void OnOpened(const absl::Status& status);
  void OnReply(uint64_t sequence, absl::StatusOr<Reply> reply);
  // The end, before which all values are delivered.
  void EndLocked(uint64_t sequence, absl::Status status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What can be delivered and asked for now.
  Work WorkLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Do(Work&& work);
  void Ask(uint64_t sequence, uint64_t acknowledged);

  Agent& agent_;
  const WorkerInfo writer_;
  const uint64_t stream_;
  const uint64_t window_;
  const async::MonotonicTime deadline_;

  async::Mutex mutex_;
  Cancellation::Registration parent_ ABSL_GUARDED_BY(mutex_);
  bool opened_ ABSL_GUARDED_BY(mutex_) = false;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  // All values before these were asked for, have arrived, were delivered.
  uint64_t asked_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t received_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t delivered_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, StreamItem> arrived_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, async::Future<Reply>> under_way_ ABSL_GUARDED_BY(mutex_);
  std::deque<Done> waiting_ ABSL_GUARDED_BY(mutex_);
  // The first value that there is not, and why.
  std::optional<std::pair<uint64_t, absl::Status>> end_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_STREAM_STREAM_SOURCE_H_
