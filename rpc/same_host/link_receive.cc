// Polling for messages, and receiving them.

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/strings/str_cat.h"
#include "async/cpu_relax.h"
#include "async/status_macros.h"
#include "rpc/errors/status_details.h"
#include "rpc/same_host/incoming_region.h"
#include "rpc/same_host/link.h"

namespace hawser::rpc {
namespace {

constexpr size_t kMaxChunkListBytes = size_t{16} << 20;
// Polls between two reads of the clock.
constexpr int kPollsPerLook = 16;
// Polls after which other threads of this core get a turn.
constexpr int kPollsPerYield = 64;

std::optional<LinkMessage::Kind> KindOf(const v1::SameHostFrame& frame) {
  switch (frame.kind()) {
    case v1::SameHostFrame::KIND_REQUEST:
      return LinkMessage::Kind::kRequest;
    case v1::SameHostFrame::KIND_REPLY:
      return LinkMessage::Kind::kReply;
    case v1::SameHostFrame::KIND_CANCEL:
      return LinkMessage::Kind::kCancel;
    case v1::SameHostFrame::KIND_RELEASE:
      return LinkMessage::Kind::kRelease;
    default:
      return std::nullopt;
  }
}

}  // namespace

bool SameHostLink::Poll() {
  if (any_waiting_.load(std::memory_order_acquire)) SendWaiting();
  std::optional<LinkWork> work = Receive();
  if (!work.has_value()) return false;
  if (work->run != nullptr && !GiveToWaiter(*work)) std::move(work->run)();
  return true;
}

bool SameHostLink::GiveToWaiter(LinkWork& work) {
  async::MutexLock lock(&waiters_mutex_);
  for (Waiter* waiter : waiters_) {
    if (waiter->call != work.call ||
        waiter->received.load(std::memory_order_relaxed)) {
      continue;
    }
    waiter->run = std::move(work.run);
    waiter->received.store(true, std::memory_order_release);
    return true;
  }
  return false;
}

void SameHostLink::PollFor(uint64_t call, absl::Duration spin,
                           absl::FunctionRef<bool()> stop) {
  if (ended_.load(std::memory_order_acquire)) return;
  const async::MonotonicTime until =
      async::AddDelay(std::chrono::steady_clock::now(), spin);
  // A thread that polls forever shares its core with others that do the same.
  const bool may_sleep = until != async::kNever;
  Waiter waiter{.call = call};
  {
    async::MutexLock lock(&waiters_mutex_);
    waiters_.push_back(&waiter);
  }
  BeginPolling();
  for (int i = 1;; ++i) {
    if (std::optional<LinkWork> work = Receive()) {
      if (work->run == nullptr) continue;
      if (work->call == call) {
        waiter.run = std::move(work->run);
        break;
      }
      if (!GiveToWaiter(*work)) loop_.Post(std::move(work->run));
    }
    if (waiter.received.load(std::memory_order_acquire) || stop() ||
        ended_.load(std::memory_order_acquire)) {
      break;
    }
    if (loop_.OthersNeedThisThread(this)) break;
    if (i % kPollsPerLook == 0) {
      if (std::chrono::steady_clock::now() >= until) break;
      // Lets the peer reply, or the kernel move one of the two threads.
      if (may_sleep &&
          (i % kPollsPerYield == 0 || reader_.WriterOnThisCore())) {
        std::this_thread::yield();
      }
    }
    async::CpuRelax();
  }
  if (EndPolling()) loop_.Wake();
  {
    async::MutexLock lock(&waiters_mutex_);
    std::erase(waiters_, &waiter);
  }
  // Run only now: the work may block, and the peer does not signal while this
  // thread counts as polling.
  if (waiter.run != nullptr) std::move(waiter.run)();
}

void SameHostLink::BeginPolling() {
  if (num_polling_.fetch_add(1, std::memory_order_seq_cst) == 0) {
    reader_.WakeUp();
  }
}

bool SameHostLink::EndPolling() {
  if (num_polling_.fetch_sub(1, std::memory_order_seq_cst) != 1) return false;
  return reader_.FallAsleep() && !ended_.load(std::memory_order_acquire);
}

std::optional<LinkWork> SameHostLink::Receive() {
  if (!reader_.HasFrame() || ended_.load(std::memory_order_acquire) ||
      receiving_.exchange(true, std::memory_order_acquire)) {
    return std::nullopt;
  }
  std::optional<LinkWork> work;
  absl::Status broken;
  const ipc::RingResult result = reader_.Read(incoming_);
  const bool signal = result == ipc::RingResult::kDone && reader_.NeedsSignal();
  if (result == ipc::RingResult::kBroken) {
    broken = absl::InternalError("the peer broke the shared ring");
  } else if (result == ipc::RingResult::kDone) {
    if (!incoming_frame_.ParseFromString(incoming_)) {
      broken = absl::InternalError("the peer sent a malformed frame");
    } else if (!KindOf(incoming_frame_).has_value()) {
      // Of a later version of the protocol.
    } else if (absl::StatusOr<LinkMessage> message = Read(incoming_frame_);
               message.ok()) {
      work = handler_->OnMessage(*std::move(message));
    } else {
      broken = message.status();
    }
  }
  receiving_.store(false, std::memory_order_release);
  if (signal) SignalPeer();
  if (!broken.ok()) Close(std::move(broken));
  return work;
}

absl::StatusOr<LinkMessage> SameHostLink::Read(v1::SameHostFrame& frame) {
  LinkMessage message;
  message.kind = *KindOf(frame);
  message.call = frame.call();
  message.path = std::move(*frame.mutable_path());
  if (frame.timeout_ns() != 0) {
    constexpr uint64_t kLongest = uint64_t{1} << 62;
    message.deadline = async::AddDelay(
        std::chrono::steady_clock::now(),
        absl::Nanoseconds(std::min(frame.timeout_ns(), kLongest)));
  }
  if (frame.has_error()) {
    message.error = FromStatusDetails(frame.error());
    if (message.error.ok()) {
      message.error =
          absl::UnknownError("the peer sent an error without a code");
    }
  } else if (absl::Status status = ReadChunks(frame, message.payload);
             !status.ok()) {
    if (absl::IsInternal(status)) return status;
    message.payload = Payload();
    message.error = std::move(status);
  }
  return message;
}

absl::Status SameHostLink::ReadChunks(v1::SameHostFrame& frame,
                                      Payload& payload) {
  std::shared_ptr<IncomingRegion> region;
  const bool has_list = frame.has_chunk_list();
  const auto is_remote = [](const v1::SameHostChunk& chunk) {
    return chunk.address() != 0 || chunk.heap_offset() != 0;
  };
  if (has_list ||
      std::any_of(frame.chunks().begin(), frame.chunks().end(), is_remote)) {
    if (frame.slot() >= kNumSlots) {
      return absl::InternalError("a slot that does not exist");
    }
    region = std::make_shared<IncomingRegion>(
        memory_, peer_, loop_.copier(), in_, frame.slot(), frame.slot_value());
    if (frame.kind() == v1::SameHostFrame::KIND_REPLY) {
      region->AtEnd([weak = weak_from_this(), call = frame.call()] {
        if (auto link = weak.lock()) {
          link->Send({.kind = LinkMessage::Kind::kRelease, .call = call});
        }
      });
    }
  }
  v1::SameHostChunkList list;
  if (has_list) {
    const v1::SameHostChunk& at = frame.chunk_list();
    if (at.size() > kMaxChunkListBytes) {
      return absl::ResourceExhaustedError("a message in too many chunks");
    }
    std::string bytes(at.size(), '\0');
    RETURN_IF_ERROR(region->Read(at.address(), bytes.data(), bytes.size()));
    if (!list.ParseFromString(bytes)) {
      return absl::InternalError("a malformed list of chunks");
    }
  }
  auto& chunks = has_list ? *list.mutable_chunks() : *frame.mutable_chunks();
  for (v1::SameHostChunk& chunk : chunks) {
    const size_t size =
        is_remote(chunk) ? chunk.size() : chunk.content().size();
    if (size > max_message_bytes_ - payload.size()) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "a message of more than ", max_message_bytes_,
          " bytes; raise GrpcTransportOptions::max_message_bytes at both "
          "ends"));
    }
    if (chunk.heap_offset() != 0) {
      if (chunk.heap_offset() > kHeapBytes ||
          size > kHeapBytes - chunk.heap_offset()) {
        return absl::InternalError("a chunk beyond the heap");
      }
      payload.Append(std::make_shared<HeapChunk>(region, chunk.heap_offset()),
                     size);
    } else if (is_remote(chunk)) {
      payload.Append(std::make_shared<RemoteChunk>(region, chunk.address()),
                     size);
    } else {
      payload.Append(std::move(*chunk.mutable_content()));
    }
  }
  return absl::OkStatus();
}

}  // namespace hawser::rpc
