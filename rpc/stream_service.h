// What lets an agent serve and read streams.

#ifndef HAWSER_RPC_STREAM_SERVICE_H_
#define HAWSER_RPC_STREAM_SERVICE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "async/clock.h"
#include "async/future.h"
#include "async/mutex.h"
#include "proto/stream.pb.h"
#include "rpc/agent.h"
#include "rpc/method.h"
#include "rpc/service.h"
#include "rpc/stream_sink.h"

namespace hawser::rpc {

// Attaches streams to an agent: give one to AgentOptions::services. Serves the
// StreamFunctions of the agent's registry.
//
// A stream ends with its function, when its reader closes it or is lost, at its
// deadline, or when the agent stops. A reader may have 1024 open at a time.
class StreamService final : public Service {
 public:
  std::string_view name() const override { return "stream"; }
  absl::Status Start(Agent& agent) override;
  void OnWorkerLost(const WorkerInfo& worker,
                    const absl::Status& status) override;
  void Interrupt() override;

  // For streams that this worker reads.
  uint64_t NewStreamId() { return ++last_stream_; }

  // Streams that this worker writes and that were not closed.
  int64_t num_open() const;

 private:
  // The reader's incarnation and its number of the stream.
  using Key = std::pair<Incarnation, uint64_t>;
  struct Entry {
    std::shared_ptr<StreamSink> sink;
    std::optional<async::TimerId> timer;
  };

  absl::Status Open(const MethodCall& call,
                    Message<v1::StreamOpenRequest> request);
  async::Future<Message<v1::StreamNextReply>> Next(
      const MethodCall& call, const v1::StreamNextRequest& request);
  absl::Status Insert(const Key& key, const std::shared_ptr<StreamSink>& sink,
                      async::MonotonicTime deadline);
  // The deadline has passed: ends the stream, and forgets it a little later.
  void Expire(const Key& key);
  void Close(const Key& key);
  void CloseAll(absl::FunctionRef<bool(Incarnation reader)> matches);

  Agent* agent_ = nullptr;
  std::atomic<uint64_t> last_stream_{0};

  mutable async::Mutex mutex_;
  bool interrupted_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_map<Key, Entry> streams_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<Incarnation, int> num_streams_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_STREAM_SERVICE_H_
