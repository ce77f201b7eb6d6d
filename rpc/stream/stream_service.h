// Service by which an agent serves and reads streams.

#ifndef HAWSER_RPC_STREAM_STREAM_SERVICE_H_
#define HAWSER_RPC_STREAM_STREAM_SERVICE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "async/clock.h"
#include "async/future.h"
#include "async/mutex.h"
#include "net/per_peer_quota.h"
#include "net/recent_keys.h"
#include "proto/stream.pb.h"
#include "rpc/agent/service.h"
#include "rpc/agent/service_host.h"
#include "rpc/functions/method.h"
#include "rpc/stream/stream_limits.h"
#include "rpc/stream/stream_sink.h"
#include "rpc/transport/cancellation.h"
#include "rpc/transport/gate.h"

namespace hawser::rpc {

// Adds streams to an agent: put one into AgentOptions::services. Serves the
// StreamFunctions of the agent's registry.
//
// A stream ends with its function, when its reader closes it or is lost, at its
// deadline, or when the agent stops. Readers that are not members of the job
// are never declared lost; their streams also end if they send no request for
// non_member_limit.
class StreamService final : public Service {
 public:
  explicit StreamService(const StreamLimits& limits = {});

  std::string_view name() const override { return "stream"; }
  absl::Status Start(ServiceHost& host) override;
  void OnWorkerLost(const WorkerInfo& worker,
                    const absl::Status& status) override;
  void Interrupt() override;
  // "open": num_open().
  std::map<std::string, int64_t> DebugNumbers() const override {
    return {{"open", num_open()}};
  }

  // For streams that this worker reads.
  uint64_t NewStreamId() { return ++last_stream_; }

  // Streams that this worker writes and that were not closed.
  int64_t num_open() const;

 private:
  // A reader and its number of the stream. Readers that are not members may
  // claim any incarnation, so that the name, which a certificate can prove, is
  // a part.
  struct Key {
    std::string reader;
    Incarnation incarnation{};
    uint64_t stream = 0;

    friend bool operator==(const Key&, const Key&) = default;

    template <class H>
    friend H AbslHashValue(H h, const Key& key) {
      return H::combine(std::move(h), key.reader, key.incarnation, key.stream);
    }
  };
  static Key KeyOf(const MethodCall& call, uint64_t stream) {
    return {call.peer.name, call.peer.incarnation, stream};
  }
  struct Entry {
    std::shared_ptr<StreamSink> sink;
    // Time of the reader's last request.
    async::MonotonicTime asked{};
    std::shared_ptr<Cancellation> last_request = nullptr;
    std::optional<async::TimerId> timer = {};
    net::PerPeerQuota::Reservation reservation = {};
    // Cancellation of its Open.
    Cancellation::Registration on_cancel = {};
  };

  absl::Status Open(const MethodCall& call,
                    Message<v1::StreamOpenRequest> request);
  async::Future<Message<v1::StreamNextReply>> Next(
      const MethodCall& call, const v1::StreamNextRequest& request);
  absl::Status Insert(const Key& key, const std::shared_ptr<StreamSink>& sink,
                      async::MonotonicTime deadline);
  // Closes the stream, which was just inserted, if it has already ended or when
  // its Open is cancelled.
  void FollowOpen(const Key& key, const std::shared_ptr<StreamSink>& sink,
                  const MethodCall& call) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the stream at its deadline.
  void Expire(const Key& key);
  void Close(const Key& key);
  // Removes the stream, if it is open, and cancels it with `status`.
  void End(const Key& key, const absl::Status& status);
  void CloseAll(
      absl::FunctionRef<bool(const Key& key, const Entry& entry)> matches);
  // Closes the streams of silent non-members, periodically while there are
  // streams.
  void WatchNonMembers() ABSL_LOCKS_EXCLUDED(mutex_);
  // Runs `action` at `time`, unless interrupted.
  async::TimerId CallAt(async::MonotonicTime time,
                        absl::AnyInvocable<void()> action);

  const StreamLimits limits_;
  ServiceHost* host_ = nullptr;
  std::atomic<uint64_t> last_stream_{0};
  // Entered by timers; closed when interrupted.
  const std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
  net::PerPeerQuota quota_;

  mutable async::Mutex mutex_;
  bool interrupted_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_map<Key, Entry> streams_ ABSL_GUARDED_BY(mutex_);
  // Streams whose deadline has passed, so that a reader whose clock is behind
  // still gets kDeadlineExceeded.
  static constexpr size_t kMaxExpired = 1024;
  net::RecentKeys<Key> expired_ ABSL_GUARDED_BY(mutex_){kMaxExpired};
  // Set while there are streams.
  std::optional<async::TimerId> non_members_timer_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_STREAM_STREAM_SERVICE_H_
