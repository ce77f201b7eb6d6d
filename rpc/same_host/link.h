// One bidirectional message link through shared memory.

#ifndef HAWSER_RPC_SAME_HOST_LINK_H_
#define HAWSER_RPC_SAME_HOST_LINK_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "async/clock.h"
#include "async/mutex.h"
#include "fs/unique_fd.h"
#include "ipc/byte_ring.h"
#include "ipc/event_loop.h"
#include "ipc/peer_process.h"
#include "net/per_peer_quota.h"
#include "proto/same_host.pb.h"
#include "rpc/link/message_link.h"
#include "rpc/link/unread_replies.h"
#include "rpc/same_host/link_heap.h"
#include "rpc/same_host/link_memory.h"
#include "rpc/transport/payload.h"
#include "tensor/memory/storage.h"

namespace hawser::rpc {

// Small messages are written into the ring. Larger chunks of messages are
// copied to the heap of the shared memory, from which the peer copies them to
// their destination. For still larger ones, and if the heap is full, the ring
// contains their location in this process: the peer copies them once, and this
// process keeps them until Forget. Messages that do not fit are queued.
//
// The link ends by Close, when the peer's process ends, or when the peer
// violates the protocol. A backlog of 131,072 replies that the peer has not
// read counts as a violation; a reply beyond the quota of its peer becomes an
// error. Thread-safe.
//
// Split by operation: link.cc starts and ends, link_send.cc sends,
// link_receive.cc polls and reads.
class SameHostLink final : public MessageLink,
                           public ipc::EventLoop::Source,
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

  // `loop` must outlive the link.
  SameHostLink(Parts parts, ipc::EventLoop* loop);
  ~SameHostLink() override;

  // Counts the memory of replies. Call before Start.
  void LimitReplies(std::shared_ptr<net::PerPeerQuota> quota, std::string peer);

  // --- MessageLink
  void SetHandler(std::shared_ptr<LinkHandler> handler) override {
    handler_ = std::move(handler);
  }
  void Start() override;
  void Send(LinkMessage message) override;
  size_t num_replies_waiting() const override {
    return num_replies_waiting_.load(std::memory_order_relaxed);
  }
  absl::Status CheckRoom() override { return unread_.CheckRoom(); }
  bool more_waiting() override { return reader_.HasFrame(); }
  tensor::StoragePtr AllocateReply(size_t bytes) override;
  void Forget(uint64_t call) override;
  void PollFor(uint64_t call, absl::Duration spin,
               absl::FunctionRef<bool()> stop) override;
  absl::Duration max_poll() const override { return absl::Milliseconds(1); }
  void WakeBy(async::MonotonicTime time) override { loop_.WakeBy(time); }
  void Close(absl::Status status) override;
  size_t max_message_bytes() const override { return max_message_bytes_; }

  // --- EventLoop::Source
  bool Poll() override;
  bool HasEvent() override { return reader_.HasFrame(); }
  bool PeerOnThisCore() const override { return reader_.WriterOnThisCore(); }
  void BeginPolling() override;
  bool EndPolling() override;
  async::MonotonicTime OnTime(async::MonotonicTime now) override;

 private:
  // A thread in PollFor. It gets the work of its call whichever thread
  // receives it: it would otherwise have to be woken, and has time for it.
  struct Waiter {
    const uint64_t call;
    std::atomic<bool> received{false};
    // Constant once received.
    absl::AnyInvocable<void()&&> run = nullptr;
  };

  // A copy of a chunk in the heap.
  struct HeapRange {
    size_t chunk = 0;
    size_t offset = 0;
    size_t size = 0;
  };

  // Memory that a sent message keeps alive for the peer.
  struct Region {
    uint32_t slot = 0;
    // Empty if no chunk is read from its memory, which may be in the heap.
    Payload payload = {};
    std::string chunk_list = {};
    absl::InlinedVector<HeapRange, 2> heap = {};
    // Of the payload, if it is a reply's.
    size_t unread_bytes = 0;
  };

  // A message may hold tensors that came through this link, and through others:
  // the last handle on one sends a release. So messages are never destroyed
  // with the lock held.

  // Returns false if the message must be queued.
  bool TrySendLocked(LinkMessage& message)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The same for a message with chunks that the frame does not contain.
  bool TrySendLargeLocked(LinkMessage& message)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Adds the chunks to the frame, and ranges of the heap for them to `region`.
  // Returns whether the peer reads any where `payload` has it.
  bool PlaceChunksLocked(const Payload& payload, Region& region)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CopyToHeapLocked(const Payload& payload, const Region& region)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the ring has space for a frame; otherwise this link waits for it.
  bool HasRoomLocked(size_t frame_bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool WriteLocked(std::string_view frame)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RevokeLocked(const Region& region) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FreeHeapLocked(const Region& region)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AwaitRoomLocked(LinkMessage& message)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  LinkMessage TakeWaitingLocked(const std::deque<LinkMessage>::iterator& at)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Schedules Close, which runs without holding a lock.
  void BreakLocked(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SendWaiting();
  void SignalPeer();
  // Receives one message, unless another thread is receiving.
  std::optional<LinkWork> Receive();
  // Counts the bytes of a reply that stays in this process. If the quota does
  // not allow that, the reply becomes that error.
  absl::Status CountUnreadLocked(LinkMessage& message)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Gives `work` to the thread that polls for its call, if there is one.
  bool GiveToWaiter(LinkWork& work) ABSL_LOCKS_EXCLUDED(waiters_mutex_);
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
  const std::shared_ptr<LinkHeap> heap_;
  std::shared_ptr<LinkHandler> handler_;

  std::atomic<bool> ended_{false};
  std::atomic<int> num_polling_{0};
  // Set by the receiving thread.
  std::atomic<bool> receiving_{false};
  ipc::RingReader reader_;
  std::string incoming_;
  v1::SameHostFrame incoming_frame_;

  async::Mutex waiters_mutex_;
  // Several may wait for one call; the first gets its work.
  std::vector<Waiter*> waiters_ ABSL_GUARDED_BY(waiters_mutex_);

  async::Mutex mutex_;
  ipc::RingWriter writer_ ABSL_GUARDED_BY(mutex_);
  v1::SameHostFrame outgoing_frame_ ABSL_GUARDED_BY(mutex_);
  std::string outgoing_ ABSL_GUARDED_BY(mutex_);
  std::vector<uint32_t> free_slots_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<uint64_t, Region> regions_ ABSL_GUARDED_BY(mutex_);
  std::deque<LinkMessage> waiting_ ABSL_GUARDED_BY(mutex_);
  std::atomic<bool> any_waiting_{false};
  // Counts entries of `waiting_`; modified under the lock.
  std::atomic<size_t> num_replies_waiting_{0};
  // Modified under the lock.
  UnreadReplies unread_;
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_SAME_HOST_LINK_H_
