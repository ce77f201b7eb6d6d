// The callee's end of a stream, its types hidden.

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

// The values that were written and not acknowledged yet, at most a window of
// them, and the requests for those to come. Thread-safe; callbacks of its
// futures run in the thread whose call completes them, no lock held.
class StreamSink {
 public:
  // What a request for a value is answered with: the value or, if there is
  // none, how the stream ended.
  struct Answer {
    std::optional<StreamItem> item;
    absl::Status end;
  };

  // `agent` outlives the stream's function.
  StreamSink(Agent* agent, WorkerInfo reader, size_t window)
      : agent_(agent), reader_(std::move(reader)), window_(window) {}

  // For encoders.
  Agent* agent() const { return agent_; }
  const WorkerInfo& reader() const { return reader_; }
  // Set when nobody reads any more.
  const std::shared_ptr<Cancellation>& cancellation() const {
    return cancellation_;
  }

  // See StreamWriter.
  async::Future<void> Write(StreamItem item);

  // The function has ended: those who ask for more get `status`. Only the first
  // End and Cancel count.
  void End(absl::Status status);

  // Nobody reads any more: the writer and requests get `status`, not OK.
  void Cancel(absl::Status status);

  // Value number `sequence`, when there is one; all before `acknowledged` are
  // forgotten. Each request for the same value is answered, since any of them
  // may be the one whose reader still waits.
  //
  //   kInvalidArgument  the value was forgotten, or is beyond the window.
  //   kUnavailable      it was asked for again, eight times.
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
  // By the value asked for, oldest first.
  std::map<uint64_t, std::deque<async::Promise<Answer>>> requests_
      ABSL_GUARDED_BY(mutex_);
  // Of a Write that waits for room.
  std::optional<async::Promise<void>> writer_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);
  // Then `end_` is why.
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
};

namespace internal {
// Set around the function that writes the stream.
inline constinit const async::TaskLocal<std::shared_ptr<StreamSink>>
    current_stream;
}  // namespace internal

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_STREAM_STREAM_SINK_H_
