// One connection through shared memory: messages there and back.

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
#include "ipc/segment.h"
#include "proto/same_host.pb.h"
#include "rpc/transport/payload.h"

namespace hawser::rpc {

// A message of a link.
struct LinkMessage {
  v1::SameHostFrame::Kind kind = v1::SameHostFrame::KIND_UNSPECIFIED;
  uint64_t call = 0;
  // Of a request.
  std::string path = {};
  async::MonotonicTime deadline = async::kNever;
  // Of a request or a reply.
  Payload payload = {};
  // Of a reply; OK if there is none.
  absl::Status error = {};
};

// Small messages are written into the ring. Of larger ones the ring carries
// where they lie in this process; the peer copies them from there, once, to
// where it wants them, and this process keeps them until Forget. What does not
// fit waits its turn.
//
// Ends when the peer's process ends or breaks the rules, which to have 131,072
// answers waiting for it to read them does, or by Close.
// Thread-safe.
//
// Split by operation: link.cc begins and ends, link_send.cc sends,
// link_receive.cc polls and reads.
class SameHostLink final : public ipc::EventLoop::Source,
                           public std::enable_shared_from_this<SameHostLink> {
 public:
  enum class Side { kServer, kClient };

  struct Parts {
    Side side = Side::kClient;
    std::shared_ptr<ipc::Segment> segment = nullptr;
    std::shared_ptr<const ipc::PeerProcess> peer = nullptr;
    // The connected Unix socket.
    fs::UniqueFd socket = {};
    // The peer's.
    fs::UniqueFd doorbell = {};
    size_t max_message_bytes = 0;
  };

  // What is to be done about a message, outside of the link's locks.
  struct Work {
    uint64_t call = 0;
    absl::AnyInvocable<void()&&> run = nullptr;
  };

  class Handler {
   public:
    virtual ~Handler() = default;
    // Messages come one at a time, in order. Must not wait.
    virtual Work OnMessage(LinkMessage message) = 0;
    // Once, on a thread of the loop. Messages that came before may still be
    // worked on.
    virtual void OnEnd(const absl::Status& status) = 0;
    // See EventLoop::Source.
    virtual async::MonotonicTime OnTime(async::MonotonicTime now) = 0;
  };

  // `loop` outlives the link.
  SameHostLink(Parts parts, ipc::EventLoop* loop);
  ~SameHostLink() override;

  // Once, before anything else: who gets the messages.
  void SetHandler(std::shared_ptr<Handler> handler) {
    handler_ = std::move(handler);
  }
  // Once: messages are taken from now on, until the end.
  void Start();

  // Nothing happens after the end.
  void Send(LinkMessage message);

  // Answers, and news that one was read, which wait for room in the ring.
  size_t num_answers_waiting() const {
    return num_answers_waiting_.load(std::memory_order_relaxed);
  }

  // The peer has no business any more with the message of that call that was
  // sent from here: its memory is let go, and a message that has not gone out
  // never will.
  void Forget(uint64_t call);

  // Polls for up to `spin`, or until `done` says so, and runs what concerns
  // `call`; the rest is left to the loop.
  void PollFor(uint64_t call, absl::Duration spin,
               const std::function<bool()>& done);

  // Ends the link, also at the peer. `status`, not OK, goes to OnEnd.
  void Close(absl::Status status);

  size_t max_message_bytes() const { return max_message_bytes_; }

  // --- EventLoop::Source
  bool Poll() override;
  bool PeerOnThisCore() const override { return reader_.WriterOnThisCore(); }
  void BeginPolling() override;
  bool EndPolling() override;
  async::MonotonicTime OnTime(async::MonotonicTime now) override;

 private:
  // What a message that was sent keeps alive for the peer to read.
  struct Region {
    uint32_t slot = 0;
    Payload payload;
    std::string chunk_list;
  };

  // False: it must wait.
  bool TrySendLocked(LinkMessage& message)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool WriteLocked(std::string_view frame)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RevokeLocked(uint32_t slot) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AwaitRoomLocked(LinkMessage message)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  LinkMessage TakeWaitingLocked(const std::deque<LinkMessage>::iterator& at)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Closes soon, with no lock held.
  void BreakLocked(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SendWaiting();
  void SignalPeer();
  // Takes one message, unless another thread is at it.
  std::optional<Work> Receive();
  absl::StatusOr<LinkMessage> Read(v1::SameHostFrame& frame);
  absl::Status ReadChunks(v1::SameHostFrame& frame, Payload& payload);

  const Side side_;
  const std::shared_ptr<ipc::Segment> segment_;
  const std::shared_ptr<const ipc::PeerProcess> peer_;
  const fs::UniqueFd socket_;
  const fs::UniqueFd doorbell_;
  const size_t max_message_bytes_;
  ipc::EventLoop& loop_;
  ipc::SegmentHalf& out_;
  ipc::SegmentHalf& in_;
  std::shared_ptr<Handler> handler_;

  std::atomic<bool> ended_{false};
  std::atomic<int> num_polling_{0};
  // Taken by the thread that receives.
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
  // Of `waiting_`; changed under the lock.
  std::atomic<size_t> num_answers_waiting_{0};
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_SAME_HOST_LINK_H_
