// One bidirectional message link through shared memory.

#ifndef HAWSER_RPC_SAME_HOST_LINK_H_
#define HAWSER_RPC_SAME_HOST_LINK_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "async/clock.h"
#include "async/mutex.h"
#include "fs/unique_fd.h"
#include "ipc/byte_ring.h"
#include "ipc/event_loop.h"
#include "ipc/peer_process.h"
#include "proto/same_host.pb.h"
#include "rpc/same_host/link_memory.h"
#include "rpc/transport/payload.h"

namespace hawser::rpc {

// A message of a link.
struct LinkMessage {
  v1::SameHostFrame::Kind kind = v1::SameHostFrame::KIND_UNSPECIFIED;
  uint64_t call = 0;
  // For a request.
  std::string path = {};
  async::MonotonicTime deadline = async::kNever;
  // For a request or a reply.
  Payload payload = {};
  // For a reply; OK if there is no error.
  absl::Status error = {};
};

// Small messages are written into the ring. For larger ones the ring contains
// their location in this process: the peer copies them once, directly to their
// destination, and this process keeps them until Forget. Messages that do not
// fit are queued.
//
// The link ends by Close, when the peer's process ends, or when the peer
// violates the protocol. A backlog of 131,072 replies that the peer has not
// read counts as a violation. Thread-safe.
//
// Split by operation: link.cc starts and ends, link_send.cc sends,
// link_receive.cc polls and reads.
class SameHostLink final : public ipc::EventLoop::Source,
                           public std::enable_shared_from_this<SameHostLink> {
 public:
  enum class Side { kServer, kClient };

  struct Parts {
    Side side = Side::kClient;
    std::shared_ptr<LinkMemory> memory = nullptr;
    std::shared_ptr<const ipc::PeerProcess> peer = nullptr;
    // The connected Unix socket.
    fs::UniqueFd socket = {};
    // The peer's doorbell.
    fs::UniqueFd doorbell = {};
    size_t max_message_bytes = 0;
  };

  // Work for a message, to run without the link's locks.
  struct Work {
    uint64_t call = 0;
    absl::AnyInvocable<void()&&> run = nullptr;
  };

  class Handler {
   public:
    virtual ~Handler() = default;
    // Called for one message at a time, in order. Must not block.
    virtual Work OnMessage(LinkMessage message) = 0;
    // Called once, on a thread of the loop. Work of earlier messages may still
    // be running.
    virtual void OnEnd(const absl::Status& status) = 0;
    // See EventLoop::Source.
    virtual async::MonotonicTime OnTime(async::MonotonicTime now) = 0;
  };

  // `loop` must outlive the link.
  SameHostLink(Parts parts, ipc::EventLoop* loop);
  ~SameHostLink() override;

  // Sets the receiver of messages. Call once, before anything else.
  void SetHandler(std::shared_ptr<Handler> handler) {
    handler_ = std::move(handler);
  }
  // Starts receiving messages, until the link ends. Call once.
  void Start();

  // Has no effect after the link has ended.
  void Send(LinkMessage message);

  // Number of replies and releases that wait for space in the ring.
  size_t num_answers_waiting() const {
    return num_answers_waiting_.load(std::memory_order_relaxed);
  }

  // Frees the memory of the message sent for `call`, which the peer no longer
  // needs. A message that is still queued is not sent.
  void Forget(uint64_t call);

  // Polls for up to `spin`, or until `done` returns true, and runs the work of
  // `call`; other work is left to the loop.
  void PollFor(uint64_t call, absl::Duration spin,
               const std::function<bool()>& done);

  // Ends the link at both ends. `status`, which must not be OK, is passed to
  // OnEnd.
  void Close(absl::Status status);

  size_t max_message_bytes() const { return max_message_bytes_; }

  // --- EventLoop::Source
  bool Poll() override;
  bool PeerOnThisCore() const override { return reader_.WriterOnThisCore(); }
  void BeginPolling() override;
  bool EndPolling() override;
  async::MonotonicTime OnTime(async::MonotonicTime now) override;

 private:
  // Memory that a sent message keeps alive for the peer.
  struct Region {
    uint32_t slot = 0;
    Payload payload;
    std::string chunk_list;
  };

  // Returns false if the message must be queued.
  bool TrySendLocked(LinkMessage& message)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool WriteLocked(std::string_view frame)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RevokeLocked(uint32_t slot) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AwaitRoomLocked(LinkMessage message)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  LinkMessage TakeWaitingLocked(const std::deque<LinkMessage>::iterator& at)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Schedules Close, which runs without holding a lock.
  void BreakLocked(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SendWaiting();
  void SignalPeer();
  // Receives one message, unless another thread is receiving.
  std::optional<Work> Receive();
  absl::StatusOr<LinkMessage> Read(v1::SameHostFrame& frame);
  absl::Status ReadChunks(v1::SameHostFrame& frame, Payload& payload);

  const Side side_;
  const std::shared_ptr<LinkMemory> memory_;
  const std::shared_ptr<const ipc::PeerProcess> peer_;
  const fs::UniqueFd socket_;
  const fs::UniqueFd doorbell_;
  const size_t max_message_bytes_;
  ipc::EventLoop& loop_;
  LinkHalf& out_;
  LinkHalf& in_;
  std::shared_ptr<Handler> handler_;

  std::atomic<bool> ended_{false};
  std::atomic<int> num_polling_{0};
  // Set by the receiving thread.
  std::atomic<bool> receiving_{false};
  ipc::RingReader reader_;
  std::string incoming_;
  v1::SameHostFrame incoming_frame_;

  async::Mutex mutex_;
  ipc::RingWriter writer_ ABSL_GUARDED_BY(mutex_);
  v1::SameHostFrame outgoing_frame_ ABSL_GUARDED_BY(mutex_);
  std::string outgoing_ ABSL_GUARDED_BY(mutex_);
  std::vector<uint32_t> free_slots_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<uint64_t, Region> regions_ ABSL_GUARDED_BY(mutex_);
  std::deque<LinkMessage> waiting_ ABSL_GUARDED_BY(mutex_);
  std::atomic<bool> any_waiting_{false};
  // Counts entries of `waiting_`; modified under the lock.
  std::atomic<size_t> num_answers_waiting_{0};
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_SAME_HOST_LINK_H_
