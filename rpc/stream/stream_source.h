// Type-erased client end of a stream.

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
#include "rpc/agent/service_host.h"
#include "rpc/identity/worker_info.h"
#include "rpc/stream/stream_sink.h"
#include "rpc/transport/cancellation.h"
#include "rpc/wire/encoder.h"

namespace hawser::rpc {

struct StreamOptions {
  // As CallOptions::timeout, for the whole stream.
  std::optional<absl::Duration> timeout = std::nullopt;
  // Maximum number of values in flight, and of values held by the callee; 1 to
  // 64.
  int window = 4;
};

// Requests the values of one stream, up to a window ahead of the delivered
// ones, and delivers them in order. Thread-safe.
//
// The agent must outlive it.
class StreamSource : public std::enable_shared_from_this<StreamSource> {
 public:
  // Receives a value, or nullopt at the end.
  using Done =
      absl::AnyInvocable<void(absl::StatusOr<std::optional<StreamItem>>) &&>;

  // Starts the function. kInvalidArgument for an invalid window or timeout;
  // other errors are delivered in place of the first value.
  static absl::StatusOr<std::shared_ptr<StreamSource>> Open(
      Agent& agent, const Destination& to, const StreamOptions& options,
      std::string_view function, std::string_view signature,
      absl::FunctionRef<absl::Status(Encoder&)> encode);

  StreamSource(ServiceHost& host, WorkerInfo writer, uint64_t stream,
               int window, async::MonotonicTime deadline);

  // Null where the host is a fake.
  Agent* agent() const { return host_.agent(); }
  const WorkerInfo& writer() const { return writer_; }

  // `done` runs once, when the value has arrived, in the order of the calls,
  // inside this call or in a thread of the agent.
  void Next(Done done);

  // Cancels the stream: later values are `status`. Idempotent.
  void Close(absl::Status status);

 private:
  using Reply = Message<v1::StreamNextReply>;
  // Work to do after releasing the lock.
  struct Work {
    std::vector<std::pair<Done, absl::StatusOr<std::optional<StreamItem>>>>
        deliveries;
    // Numbers of the values to request, and the acknowledgement to send.
    std::vector<uint64_t> requests;
    uint64_t acknowledged = 0;
    std::vector<async::Future<Reply>> given_up;
    bool close = false;
  };

  void FollowCurrentCall();
  void OnOpened(const absl::Status& status);
  void OnReply(uint64_t sequence, absl::StatusOr<Reply> reply);
  // Sets the end; all values before it are still delivered.
  void EndLocked(uint64_t sequence, absl::Status status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the values that can be delivered and requested now.
  Work WorkLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Do(Work&& work);
  void Ask(uint64_t sequence, uint64_t acknowledged);

  ServiceHost& host_;
  const WorkerInfo writer_;
  const uint64_t stream_;
  const uint64_t window_;
  const async::MonotonicTime deadline_;

  async::Mutex mutex_;
  Cancellation::Registration parent_ ABSL_GUARDED_BY(mutex_);
  bool opened_ ABSL_GUARDED_BY(mutex_) = false;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  // All values before these were requested, have arrived, and were delivered.
  uint64_t asked_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t received_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t delivered_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, StreamItem> arrived_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, async::Future<Reply>> under_way_ ABSL_GUARDED_BY(mutex_);
  std::deque<Done> waiting_ ABSL_GUARDED_BY(mutex_);
  // Number of the first value that does not exist, and the reason.
  std::optional<std::pair<uint64_t, absl::Status>> end_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_STREAM_STREAM_SOURCE_H_
