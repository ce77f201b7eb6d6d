#include "rpc/same_host/link.h"

#include <sys/socket.h>
#include <unistd.h>

#include <utility>

namespace hawser::rpc {

SameHostLink::SameHostLink(Parts parts, ipc::EventLoop* loop)
    : side_(parts.side),
      memory_(std::move(parts.memory)),
      peer_(std::move(parts.peer)),
      socket_(std::move(parts.socket)),
      doorbell_(std::move(parts.doorbell)),
      max_message_bytes_(parts.max_message_bytes),
      loop_(*loop),
      out_(side_ == Side::kServer ? memory_->layout().to_client
                                  : memory_->layout().to_server),
      in_(side_ == Side::kServer ? memory_->layout().to_server
                                 : memory_->layout().to_client),
      heap_(std::make_shared<LinkHeap>(memory_, out_)),
      reader_(&in_.control, in_.bytes.data(), kRingBytes),
      writer_(&out_.control, out_.bytes.data(), kRingBytes) {}

SameHostLink::~SameHostLink() {
  for (const auto& [call, region] : regions_) {
    out_.slots[region.slot].fetch_add(1, std::memory_order_seq_cst);
  }
}

void SameHostLink::Start() {
  const absl::Status status =
      loop_.Watch(socket_.get(), [weak = weak_from_this()] {
        if (auto link = weak.lock()) {
          link->Close(absl::UnavailableError(
              "the peer's process has ended or closed the connection"));
        }
      });
  if (!status.ok()) {
    Close(status);
    return;
  }
  loop_.Add(shared_from_this());
  if (ended_.load(std::memory_order_acquire)) {
    // Closed concurrently, perhaps before the loop watched it.
    loop_.Unwatch(socket_.get());
    loop_.Remove(this);
  }
}

void SameHostLink::SignalPeer() {
  const uint64_t one = 1;
  // Fails only if the counter is full, and then the peer is awake already.
  [[maybe_unused]] const ssize_t written =
      write(doorbell_.get(), &one, sizeof(one));
}

void SameHostLink::LimitReplies(std::shared_ptr<net::PerPeerQuota> quota,
                                std::string peer) {
  unread_ = UnreadReplies(std::move(quota), std::move(peer));
}

async::MonotonicTime SameHostLink::OnTime(async::MonotonicTime now) {
  return handler_->OnTime(now);
}

void SameHostLink::Close(absl::Status status) {
  absl::flat_hash_map<uint64_t, Region> regions;
  std::deque<LinkMessage> waiting;
  {
    async::MutexLock lock(&mutex_);
    if (ended_.exchange(true, std::memory_order_acq_rel)) return;
    regions.swap(regions_);
    waiting.swap(waiting_);
    any_waiting_.store(false, std::memory_order_relaxed);
    heap_->Close();
    num_replies_waiting_.store(0, std::memory_order_relaxed);
    for (const auto& [call, region] : regions) RevokeLocked(region);
    unread_.Clear();
  }
  loop_.Unwatch(socket_.get());
  loop_.Remove(this);
  shutdown(socket_.get(), SHUT_RDWR);
  // OnEnd must not run in the closing thread.
  loop_.Post([handler = handler_, status = std::move(status)] {
    handler->OnEnd(status);
  });
}

}  // namespace hawser::rpc
