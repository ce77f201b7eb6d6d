// Sending of messages, and the memory kept for the peer to read.

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rpc/errors/status_details.h"
#include "rpc/link/copy_time.h"
#include "rpc/same_host/link.h"

namespace hawser::rpc {
namespace {

// Chunks up to the first size are sent in the frame, up to the second size in
// total, since copying them twice costs less than a system call.
constexpr size_t kMaxInlineChunk = size_t{4} << 10;
constexpr size_t kMaxInlineBytes = size_t{16} << 10;
// Chunks of a payload that is sent in the frame: a header each is little beside
// kMaxInlineBytes.
constexpr size_t kMaxInlineChunks = 1024;
// Larger chunks up to this size are copied to the heap: two copies cost less
// than reading the memory of another process.
constexpr size_t kMaxHeapChunk = size_t{512} << 10;
// Twice the limit on one client's calls, since replies to rejected calls wait
// as well.
constexpr size_t kMaxRepliesWaiting = size_t{1} << 17;

v1::SameHostFrame::Kind ToFrameKind(LinkMessage::Kind kind) {
  switch (kind) {
    case LinkMessage::Kind::kRequest:
      return v1::SameHostFrame::KIND_REQUEST;
    case LinkMessage::Kind::kReply:
      return v1::SameHostFrame::KIND_REPLY;
    case LinkMessage::Kind::kCancel:
      return v1::SameHostFrame::KIND_CANCEL;
    case LinkMessage::Kind::kRelease:
      return v1::SameHostFrame::KIND_RELEASE;
  }
  return v1::SameHostFrame::KIND_UNSPECIFIED;
}

// Messages that the peer can trigger in unlimited numbers.
bool IsReplyOrRelease(const LinkMessage& message) {
  return message.kind == LinkMessage::Kind::kReply ||
         message.kind == LinkMessage::Kind::kRelease;
}

// Whether a chunk is not sent in the frame.
bool HasLargeChunks(const Payload& payload) {
  size_t bytes = 0;
  for (const Payload::Chunk& chunk : payload.chunks()) {
    if (chunk.size > kMaxInlineChunk) return true;
    bytes += chunk.size;
  }
  return bytes > kMaxInlineBytes || payload.chunks().size() > kMaxInlineChunks;
}

}  // namespace

void SameHostLink::Send(LinkMessage message) {
  bool signal = false;
  {
    async::MutexLock lock(&mutex_);
    if (ended_.load(std::memory_order_relaxed)) return;
    if (waiting_.empty() && TrySendLocked(message)) {
      signal = writer_.NeedsSignal();
    } else {
      AwaitRoomLocked(message);
    }
  }
  if (signal) SignalPeer();
}

tensor::StoragePtr SameHostLink::AllocateReply(size_t bytes) {
  return bytes > kMaxInlineChunk && bytes <= kMaxHeapChunk
             ? heap_->AllocateStorage(bytes)
             : nullptr;
}

void SameHostLink::SendWaiting() {
  bool signal = false;
  // Destroyed without the lock.
  std::vector<LinkMessage> sent;
  {
    async::MutexLock lock(&mutex_);
    if (ended_.load(std::memory_order_relaxed)) return;
    while (!waiting_.empty() && TrySendLocked(waiting_.front())) {
      sent.push_back(TakeWaitingLocked(waiting_.begin()));
      signal = true;
    }
    any_waiting_.store(!waiting_.empty(), std::memory_order_release);
    signal = signal && writer_.NeedsSignal();
  }
  if (signal) SignalPeer();
}

bool SameHostLink::TrySendLocked(LinkMessage& message) {
  v1::SameHostFrame& frame = outgoing_frame_;
  frame.Clear();
  frame.set_kind(ToFrameKind(message.kind));
  frame.set_call(message.call);
  if (!message.path.empty()) frame.set_path(message.path);
  if (message.deadline != async::kNever) {
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(
        message.deadline - std::chrono::steady_clock::now());
    frame.set_timeout_ns(
        static_cast<uint64_t>(std::max<int64_t>(1, left.count())));
  }
  if (!message.error.ok()) {
    *frame.mutable_error() = ToStatusDetails(message.error);
  }
  if (!HasLargeChunks(message.payload)) {
    for (const Payload::Chunk& chunk : message.payload.chunks()) {
      frame.add_chunks()->set_content(chunk.data, chunk.size);
    }
    frame.SerializeToString(&outgoing_);
    return WriteLocked(outgoing_);
  }
  return TrySendLargeLocked(message);
}

bool SameHostLink::TrySendLargeLocked(LinkMessage& message) {
  if (free_slots_.empty()) {
    if (regions_.size() == kNumSlots) return false;
    free_slots_.push_back(static_cast<uint32_t>(regions_.size()));
  }
  v1::SameHostFrame& frame = outgoing_frame_;
  Region region{.slot = free_slots_.back()};
  frame.set_slot(region.slot);
  frame.set_slot_value(out_.slots[region.slot].load(std::memory_order_relaxed));
  const bool in_place = PlaceChunksLocked(message.payload, region);
  frame.SerializeToString(&outgoing_);
  if (outgoing_.size() > ipc::kMaxRingFrame / 2) {
    // The bytes in the frame always fit, so the chunks are too many.
    v1::SameHostChunkList list;
    list.mutable_chunks()->Swap(frame.mutable_chunks());
    region.chunk_list = list.SerializeAsString();
    v1::SameHostChunk* at = frame.mutable_chunk_list();
    at->set_address(reinterpret_cast<uintptr_t>(region.chunk_list.data()));
    at->set_size(region.chunk_list.size());
    frame.SerializeToString(&outgoing_);
  }
  // A message that must wait is not copied.
  if (!HasRoomLocked(outgoing_.size())) {
    FreeHeapLocked(region);
    return false;
  }
  if (in_place && message.kind == LinkMessage::Kind::kReply) {
    const absl::Status admitted = CountUnreadLocked(message);
    region.unread_bytes = std::exchange(message.unread_bytes, 0);
    if (!admitted.ok()) {
      FreeHeapLocked(region);
      return TrySendLocked(message);
    }
  }
  CopyToHeapLocked(message.payload, region);
  writer_.Write(outgoing_);
  free_slots_.pop_back();
  if (message.kind == LinkMessage::Kind::kReply) {
    // The caller's next request comes when it has copied this.
    loop_.PollUntil(async::AddDelay(std::chrono::steady_clock::now(),
                                    CopyTime(message.payload.size())));
  }
  if (in_place) region.payload = std::move(message.payload);
  auto [it, is_new] = regions_.try_emplace(message.call);
  if (!is_new) RevokeLocked(it->second);
  std::swap(it->second, region);
  // Destroyed by the caller, without the lock.
  if (!is_new) message.payload = std::move(region.payload);
  return true;
}

bool SameHostLink::PlaceChunksLocked(const Payload& payload, Region& region) {
  bool in_place = false;
  size_t in_frame = 0;
  for (size_t i = 0; i < payload.chunks().size(); ++i) {
    const Payload::Chunk& chunk = payload.chunks()[i];
    v1::SameHostChunk* sent = outgoing_frame_.add_chunks();
    if (chunk.size <= kMaxInlineChunk &&
        in_frame + chunk.size <= kMaxInlineBytes) {
      in_frame += chunk.size;
      sent->set_content(chunk.data, chunk.size);
      continue;
    }
    sent->set_size(chunk.size);
    std::optional<size_t> offset = heap_->OffsetOf(chunk.data, chunk.size);
    if (offset.has_value()) {
      in_place = true;
      sent->set_heap_offset(*offset);
      continue;
    }
    if (chunk.size <= kMaxHeapChunk) offset = heap_->Allocate(chunk.size);
    if (offset.has_value()) {
      region.heap.push_back(
          {.chunk = i, .offset = *offset, .size = chunk.size});
      sent->set_heap_offset(*offset);
    } else {
      in_place = true;
      sent->set_address(reinterpret_cast<uintptr_t>(chunk.data));
    }
  }
  return in_place;
}

void SameHostLink::CopyToHeapLocked(const Payload& payload,
                                    const Region& region) {
  for (const HeapRange& range : region.heap) {
    std::memcpy(heap_->At(range.offset), payload.chunks()[range.chunk].data,
                range.size);
  }
}

bool SameHostLink::HasRoomLocked(size_t frame_bytes) {
  switch (writer_.FindRoom(frame_bytes)) {
    case ipc::RingResult::kDone:
      return true;
    case ipc::RingResult::kNothing:
      return false;
    case ipc::RingResult::kBroken:
      break;
  }
  // The ring is unusable.
  BreakLocked(absl::InternalError("the peer broke the shared ring"));
  return false;
}

bool SameHostLink::WriteLocked(std::string_view frame) {
  return HasRoomLocked(frame.size()) &&
         writer_.Write(frame) == ipc::RingResult::kDone;
}

absl::Status SameHostLink::CountUnreadLocked(LinkMessage& message) {
  const size_t size = message.payload.size();
  if (message.unread_bytes > 0 || size == 0) return absl::OkStatus();
  absl::Status admitted = unread_.Add(size);
  if (admitted.ok()) {
    message.unread_bytes = size;
  } else {
    // Destroyed without the lock.
    loop_.Post([payload = std::exchange(message.payload, Payload())] {});
    message.error =
        absl::Status(admitted.code(),
                     absl::StrCat("the reply of ", size,
                                  " bytes is dropped: ", admitted.message()));
  }
  return admitted;
}

void SameHostLink::AwaitRoomLocked(LinkMessage& message) {
  if (IsReplyOrRelease(message)) {
    if (num_replies_waiting() >= kMaxRepliesWaiting) {
      BreakLocked(absl::ResourceExhaustedError(absl::StrCat(
          "the peer has not read ", kMaxRepliesWaiting, " replies")));
      return;
    }
    num_replies_waiting_.fetch_add(1, std::memory_order_relaxed);
  }
  if (message.kind == LinkMessage::Kind::kReply) {
    (void)CountUnreadLocked(message);
  }
  waiting_.push_back(std::move(message));
  any_waiting_.store(true, std::memory_order_release);
}

LinkMessage SameHostLink::TakeWaitingLocked(
    const std::deque<LinkMessage>::iterator& at) {
  LinkMessage message = std::move(*at);
  if (IsReplyOrRelease(message)) {
    num_replies_waiting_.fetch_sub(1, std::memory_order_relaxed);
  }
  waiting_.erase(at);
  unread_.Remove(message.unread_bytes);
  return message;
}

void SameHostLink::BreakLocked(absl::Status status) {
  if (std::exchange(broken_, true)) return;
  loop_.Post([weak = weak_from_this(), status = std::move(status)]() mutable {
    if (auto link = weak.lock()) link->Close(std::move(status));
  });
}

void SameHostLink::RevokeLocked(const Region& region) {
  out_.slots[region.slot].fetch_add(1, std::memory_order_seq_cst);
  free_slots_.push_back(region.slot);
  unread_.Remove(region.unread_bytes);
  FreeHeapLocked(region);
}

void SameHostLink::FreeHeapLocked(const Region& region) {
  for (const HeapRange& range : region.heap) {
    heap_->Free(range.offset, range.size);
  }
}

void SameHostLink::Forget(uint64_t call) {
  Region region;
  LinkMessage not_sent;
  async::MutexLock lock(&mutex_);
  if (auto it = regions_.find(call); it != regions_.end()) {
    RevokeLocked(it->second);
    region = std::move(it->second);
    regions_.erase(it);
  }
  if (waiting_.empty()) return;
  const auto is_of_call = [&](const LinkMessage& message) {
    return message.call == call && message.kind != LinkMessage::Kind::kCancel &&
           message.kind != LinkMessage::Kind::kRelease;
  };
  if (auto it = std::find_if(waiting_.begin(), waiting_.end(), is_of_call);
      it != waiting_.end()) {
    not_sent = TakeWaitingLocked(it);
  }
  // A slot may be free now.
  if (!waiting_.empty()) loop_.Wake();
}

}  // namespace hawser::rpc
