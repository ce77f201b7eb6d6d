// Type-erased server end of a stream.

#ifndef HAWSER_RPC_STREAM_STREAM_SINK_H_
#define HAWSER_RPC_STREAM_STREAM_SINK_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "async/future.h"
#include "async/mutex.h"
#include "async/task_local.h"
#include "rpc/identity/worker_info.h"
#include "rpc/transport/cancellation.h"
#include "tensor/tensor.h"

namespace hawser::rpc {

class Agent;

// One value of a stream: a serialised `ValueList` and its tensors.
struct StreamItem {
  std::string values;
  std::vector<tensor::Tensor> tensors;
};

// Holds the values written and not yet acknowledged, at most one window, and
// the requests for later values. Thread-safe; callbacks of its futures run in
// the thread whose call completes them, without holding a lock.
class StreamSink {
 public:
  // Reply to a request for a value: the value or, if there is none, the final
  // status of the stream.
  struct Answer {
    std::optional<StreamItem> item;
    absl::Status end;
  };

  // `agent` must outlive the stream's function.
  StreamSink(Agent* agent, WorkerInfo reader, size_t window)
      : agent_(agent), reader_(std::move(reader)), window_(window) {}

  // For encoders.
  Agent* agent() const { return agent_; }
  const WorkerInfo& reader() const { return reader_; }
  // Cancelled when the stream has no reader any more.
  const std::shared_ptr<Cancellation>& cancellation() const {
    return cancellation_;
  }

  // See StreamWriter.
  async::Future<void> Write(StreamItem item);

  // Ends the stream when the function returns: requests for further values get
  // `status`. Only the first End or Cancel has an effect.
  void End(absl::Status status);

  // Cancels the stream: the writer and requests get `status`, which must not be
  // OK.
  void Cancel(absl::Status status);

  // Returns value number `sequence` when it is written, and frees all values
  // before `acknowledged`. Every request for the same value gets a reply, since
  // the reader may be waiting for any of them.
  //
  //   kInvalidArgument  the value was freed, or is beyond the window.
  //   kUnavailable      more than eight requests for the value wait; the oldest
  //                     gets this.
  async::Future<Answer> Next(uint64_t sequence, uint64_t acknowledged);

  // Whether a request waits for its value.
  bool awaited() const {
    async::MutexLock lock(&mutex_);
    return !requests_.empty();
  }

 private:
  bool HasRoom() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return items_.size() < window_;
  }

  Agent* const agent_;
  const WorkerInfo reader_;
  const size_t window_;
  const std::shared_ptr<Cancellation> cancellation_ =
      std::make_shared<Cancellation>();

  mutable async::Mutex mutex_;
  // Number of the first of `items_`.
  uint64_t first_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<StreamItem> items_ ABSL_GUARDED_BY(mutex_);
  // By the requested value, oldest first.
  std::map<uint64_t, std::deque<async::Promise<Answer>>> requests_
      ABSL_GUARDED_BY(mutex_);
  // Promise of a Write that waits for space.
  std::optional<async::Promise<void>> writer_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);
  // If true, `end_` is the reason.
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
};

namespace internal {
// Set while the function that writes the stream runs.
inline constinit const async::TaskLocal<std::shared_ptr<StreamSink>>
    current_stream;
}  // namespace internal

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_STREAM_STREAM_SINK_H_
