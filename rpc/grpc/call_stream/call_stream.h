// Link over a bidirectional stream of gRPC (proto/call_stream.proto).

#ifndef HAWSER_RPC_GRPC_CALL_STREAM_CALL_STREAM_H_
#define HAWSER_RPC_GRPC_CALL_STREAM_CALL_STREAM_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/mutex.h"
#include "grpcpp/alarm.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"
#include "ipc/spin_policy.h"
#include "net/grpc/completion_event.h"
#include "net/per_peer_quota.h"
#include "rpc/grpc/call_stream/frames.h"
#include "rpc/grpc/fragments/message_assembler.h"
#include "rpc/grpc/fragments/message_fragments.h"
#include "rpc/grpc/poller.h"
#include "rpc/link/message_link.h"
#include "rpc/link/unread_replies.h"
#include "rpc/transport/gate.h"

namespace hawser::rpc {

// Short messages that are ready while one is being sent travel together in the
// next one. Replies longer than kMaxFrameMessage are sent in fragments, in turn
// with them.
//
// Messages are received on the threads of the poller. Their work runs there
// too, one after the other; its messages are sent when all work of one message
// is done, or when a thread blocks in it.
//
// The link ends by Close, when gRPC ends the stream, or when the peer violates
// the protocol. A backlog of 131,072 replies that the peer has not read, or of
// more than a megabyte of short ones beyond the quota, counts as a violation; a
// long reply beyond the quota becomes an error. Thread-safe.
//
// Split by operation: call_stream.cc starts and ends, call_stream_send.cc
// sends, call_stream_receive.cc receives.
class CallStream : public MessageLink,
                   public std::enable_shared_from_this<CallStream> {
 public:
  struct Options {
    // Both outlive the stream's last event.
    Poller* poller = nullptr;
    // Entered before starting an operation on the queue of `poller`.
    std::shared_ptr<Gate> gate = nullptr;
    size_t max_message_bytes = 0;
    // For replies received in fragments, and the peer that is charged. Null for
    // a server.
    std::shared_ptr<AssemblyBudget> budget = nullptr;
    std::string peer = {};
  };

  explicit CallStream(Options options) : options_(std::move(options)) {}

  // --- MessageLink
  void SetHandler(std::shared_ptr<LinkHandler> handler) override {
    handler_ = std::move(handler);
  }
  void Start() override;
  void Send(LinkMessage message) override;
  bool more_waiting() override ABSL_LOCKS_EXCLUDED(mutex_);
  size_t num_replies_waiting() const override {
    return num_replies_waiting_.load(std::memory_order_relaxed);
  }
  absl::Status CheckRoom() override { return unread_.CheckRoom(); }
  void Forget(uint64_t call) override;
  void PollFor(uint64_t call, absl::Duration spin,
               absl::FunctionRef<bool()> stop) override;
  absl::Duration max_poll() const override { return absl::ZeroDuration(); }
  void WakeBy(async::MonotonicTime time) override;
  void Close(absl::Status status) override;
  size_t max_message_bytes() const override {
    return options_.max_message_bytes;
  }

 protected:
  // An operation in progress, which keeps the stream alive. All events of a
  // stream are one group (poller.h).
  class Event final : public net::CompletionEvent {
   public:
    using Callback = void (CallStream::*)(bool);
    Event(const CallStream* stream, Callback callback, bool spin_after = true)
        : stream_(stream), callback_(callback), spin_after_(spin_after) {}

    void OnEvent(bool ok) override {
      const std::shared_ptr<CallStream> stream = std::move(self);
      (stream.get()->*callback_)(ok);
    }
    const void* group() const override { return stream_; }
    bool brief() const override { return true; }
    bool spin_after() const override { return spin_after_; }

    std::shared_ptr<CallStream> self;

   private:
    const CallStream* const stream_;
    const Callback callback_;
    const bool spin_after_;
  };

  // The callback of an event for a method of a derived class.
  template <class Derived>
  static Event::Callback ToCallback(void (Derived::*method)(bool)) {
    return static_cast<Event::Callback>(method);
  }

  const Options& options() const { return options_; }

  // Operations of gRPC, which end with `event`. A read and a write may be in
  // progress together. Called with the gate entered.
  virtual void StartRead(::grpc::ByteBuffer* message, Event* event) = 0;
  virtual void StartWrite(const ::grpc::ByteBuffer& message, Event* event) = 0;
  // The peer has ended the stream, or it is broken; no read is in progress.
  // Calls End, perhaps later.
  virtual void OnReadsEnded() = 0;
  // The link has ended with `status`. Ends the stream of gRPC, so that the read
  // in progress ends. No other operation of this class is in progress, except
  // perhaps a write.
  virtual void EndStreamLocked(const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  // The last write after EndStreamLocked has ended.
  virtual void OnLastWriteLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {}

  // Counts the memory of replies. Call before Start.
  void LimitReplies(std::shared_ptr<net::PerPeerQuota> quota, std::string peer);

  // Sends an empty message, before anything else.
  void SendConfirmation();
  // Ends the link: passes `status` to the handler. The first call counts.
  void EndLocked(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void End(absl::Status status);
  // Number of messages with work that were received.
  uint64_t num_received() const {
    return num_received_.load(std::memory_order_relaxed);
  }
  bool ended() const { return ended_.load(std::memory_order_acquire); }
  bool writing() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return writing_;
  }

  async::Mutex mutex_;

 private:
  // A reply that is being sent in fragments.
  struct LongReply {
    uint64_t call = 0;
    size_t bytes = 0;
    MessageFragments fragments;
  };

  void OnRead(bool ok);
  void OnWritten(bool ok);
  void OnTimer(bool ok);

  void ReadNext();
  // Turn what was received into work. Errors are violations of the protocol.
  absl::Status ReceiveFrames(const std::vector<::grpc::Slice>& slices);
  // Returns whether there is work.
  absl::StatusOr<bool> ReceiveFragment(ReceivedFragment received);
  // Receives the fragments that wait, unless another thread does. Returns
  // whether there is work.
  bool AssembleFragments();
  // Runs all work that is ready. In Poller::PollInEvent leaves it to another
  // thread.
  void RunReady();
  void PostRunReady(bool brief = true);
  // PollFor in a polling thread, which runs work.
  std::optional<LinkWork> PollInEvent(uint64_t call,
                                      absl::FunctionRef<bool()> pending);
  void PostReady();
  std::optional<LinkWork> TakeReadyLocked(uint64_t call)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Waits, without sleeping, for the polling threads to receive and run a
  // message, or to yield.
  void SpinUntilRun(async::MonotonicTime until, absl::FunctionRef<bool()> done);

  void EnqueueLocked(LinkMessage message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Starts the next write, unless one is in progress or nothing waits.
  void WriteNextLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<::grpc::ByteBuffer> NextMessageLocked()
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Sets the timer for `wake_at_`.
  void SetTimerLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  std::shared_ptr<LinkHandler> handler_;
  std::atomic<bool> ended_{false};

  Event read_{this, &CallStream::OnRead};
  // Follows each request at once, long before its reply.
  Event written_{this, &CallStream::OnWritten, /*spin_after=*/false};
  Event timer_{this, &CallStream::OnTimer};
  ::grpc::ByteBuffer incoming_;

  ipc::SpinPolicy spin_policy_;
  // Number of messages received, and of those whose work has run.
  std::atomic<uint64_t> num_received_{0};
  std::atomic<uint64_t> num_run_{0};
  // The call whose reply a thread spins for.
  std::atomic<uint64_t> awaited_call_{0};

  // Guards the replies being received.
  async::Mutex assembly_mutex_;
  absl::flat_hash_map<uint64_t, std::unique_ptr<MessageAssembler>> assemblers_
      ABSL_GUARDED_BY(assembly_mutex_);

  std::deque<ReceivedFragment> fragments_ ABSL_GUARDED_BY(mutex_);
  // A thread is in AssembleFragments.
  bool assembling_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<LinkWork> ready_ ABSL_GUARDED_BY(mutex_);
  // The thread in RunReady, which sends the messages of its work in the end.
  // None if there is none, or if another one has taken over because it blocks.
  std::thread::id running_ ABSL_GUARDED_BY(mutex_);

  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool last_was_frames_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<FrameBatch> batches_ ABSL_GUARDED_BY(mutex_);
  size_t batched_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // Counted bytes of the message that is being written.
  size_t written_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // Modified under the lock.
  UnreadReplies unread_;
  std::deque<LongReply> long_replies_ ABSL_GUARDED_BY(mutex_);
  // Modified under the lock.
  std::atomic<size_t> num_replies_waiting_{0};

  ::grpc::Alarm alarm_ ABSL_GUARDED_BY(mutex_);
  bool alarm_set_ ABSL_GUARDED_BY(mutex_) = false;
  async::MonotonicTime wake_at_ ABSL_GUARDED_BY(mutex_) = async::kNever;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_GRPC_CALL_STREAM_CALL_STREAM_H_
