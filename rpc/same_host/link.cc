#include "rpc/same_host/link.h"

#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "async/cpu_relax.h"
#include "async/status_macros.h"
#include "rpc/same_host/incoming_region.h"
#include "rpc/same_host/make_way.h"
#include "rpc/status_details.h"

namespace hawser::rpc {
namespace {

// Chunks up to the first are carried in the frame, as long as they are not more
// than the second together: to copy them twice costs less than a system call.
constexpr size_t kMaxInlineChunk = size_t{4} << 10;
constexpr size_t kMaxInlineBytes = size_t{16} << 10;
constexpr size_t kMaxChunkListBytes = size_t{16} << 20;
// Twice as many as one client's calls, which wait after they were refused too.
constexpr size_t kMaxAnswersWaiting = size_t{1} << 17;
// Polls between two looks at the clock.
constexpr int kPollsPerLook = 16;

// What the peer brings about, as often as it likes.
bool IsAnswer(const LinkMessage& message) {
  return message.kind == v1::SameHostFrame::KIND_REPLY ||
         message.kind == v1::SameHostFrame::KIND_RELEASE;
}

}  // namespace

SameHostLink::SameHostLink(Parts parts, EventLoop* loop)
    : side_(parts.side),
      segment_(std::move(parts.segment)),
      peer_(std::move(parts.peer)),
      socket_(std::move(parts.socket)),
      doorbell_(std::move(parts.doorbell)),
      max_message_bytes_(parts.max_message_bytes),
      loop_(*loop),
      out_(side_ == Side::kServer ? segment_->layout().to_client
                                  : segment_->layout().to_server),
      in_(side_ == Side::kServer ? segment_->layout().to_server
                                 : segment_->layout().to_client),
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
    // Closed meanwhile, perhaps before the loop knew of it.
    loop_.Unwatch(socket_.get());
    loop_.Remove(this);
  }
}

void SameHostLink::RingPeer() {
  const uint64_t one = 1;
  // A full counter has woken it already.
  [[maybe_unused]] const ssize_t written =
      write(doorbell_.get(), &one, sizeof(one));
}

void SameHostLink::RevokeLocked(uint32_t slot) {
  out_.slots[slot].fetch_add(1, std::memory_order_seq_cst);
  free_slots_.push_back(slot);
}

bool SameHostLink::WriteLocked(std::string_view frame) {
  switch (writer_.Write(frame)) {
    case RingResult::kDone:
      return true;
    case RingResult::kNothing:
      return false;
    case RingResult::kBroken:
      break;
  }
  // Nothing can be sent any more.
  BreakLocked(absl::InternalError("the peer broke the shared ring"));
  return false;
}

void SameHostLink::BreakLocked(absl::Status status) {
  if (std::exchange(broken_, true)) return;
  loop_.Post([weak = weak_from_this(), status = std::move(status)]() mutable {
    if (auto link = weak.lock()) link->Close(std::move(status));
  });
}

void SameHostLink::AwaitRoomLocked(LinkMessage message) {
  if (IsAnswer(message)) {
    if (num_answers_waiting() >= kMaxAnswersWaiting) {
      BreakLocked(absl::ResourceExhaustedError(absl::StrCat(
          "the peer has not read ", kMaxAnswersWaiting, " answers")));
      return;
    }
    num_answers_waiting_.fetch_add(1, std::memory_order_relaxed);
  }
  waiting_.push_back(std::move(message));
  any_waiting_.store(true, std::memory_order_release);
}

LinkMessage SameHostLink::TakeWaitingLocked(
    std::deque<LinkMessage>::iterator at) {
  LinkMessage message = std::move(*at);
  if (IsAnswer(message)) {
    num_answers_waiting_.fetch_sub(1, std::memory_order_relaxed);
  }
  waiting_.erase(at);
  return message;
}

bool SameHostLink::TrySendLocked(LinkMessage& message) {
  v1::SameHostFrame& frame = outgoing_frame_;
  frame.Clear();
  frame.set_kind(message.kind);
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
  Region region;
  bool any_remote = false;
  size_t inline_bytes = 0;
  for (const Payload::Chunk& chunk : message.payload.chunks()) {
    v1::SameHostChunk* sent = frame.add_chunks();
    if (chunk.size <= kMaxInlineChunk &&
        inline_bytes + chunk.size <= kMaxInlineBytes) {
      inline_bytes += chunk.size;
      sent->set_content(chunk.data, chunk.size);
    } else {
      any_remote = true;
      sent->set_address(reinterpret_cast<uintptr_t>(chunk.data));
      sent->set_size(chunk.size);
    }
  }
  frame.SerializeToString(&outgoing_);
  if (outgoing_.size() > kMaxRingFrame / 2 && !frame.chunks().empty()) {
    // Above the bytes inside, which always fit, it is the number of chunks.
    v1::SameHostChunkList list;
    list.mutable_chunks()->Swap(frame.mutable_chunks());
    region.chunk_list = list.SerializeAsString();
    any_remote = true;
  }
  if (any_remote) {
    if (free_slots_.empty() && regions_.size() < kNumSlots) {
      free_slots_.push_back(static_cast<uint32_t>(regions_.size()));
    }
    if (free_slots_.empty()) return false;
    region.slot = free_slots_.back();
    frame.set_slot(region.slot);
    frame.set_slot_value(
        out_.slots[region.slot].load(std::memory_order_relaxed));
    free_slots_.pop_back();
    auto [it, is_new] = regions_.try_emplace(message.call);
    if (!is_new) RevokeLocked(it->second.slot);
    it->second = std::move(region);
    if (!it->second.chunk_list.empty()) {
      v1::SameHostChunk* list = frame.mutable_chunk_list();
      list->set_address(
          reinterpret_cast<uintptr_t>(it->second.chunk_list.data()));
      list->set_size(it->second.chunk_list.size());
    }
    frame.SerializeToString(&outgoing_);
    if (!WriteLocked(outgoing_)) {
      free_slots_.push_back(it->second.slot);
      regions_.erase(it);
      return false;
    }
    it->second.payload = std::move(message.payload);
    return true;
  }
  return WriteLocked(outgoing_);
}

void SameHostLink::Send(LinkMessage message) {
  bool ring = false;
  {
    async::MutexLock lock(&mutex_);
    if (ended_.load(std::memory_order_relaxed)) return;
    if (waiting_.empty() && TrySendLocked(message)) {
      ring = writer_.MustRing();
    } else {
      AwaitRoomLocked(std::move(message));
    }
  }
  if (ring) RingPeer();
}

void SameHostLink::SendWaiting() {
  bool ring = false;
  {
    async::MutexLock lock(&mutex_);
    if (ended_.load(std::memory_order_relaxed)) return;
    while (!waiting_.empty() && TrySendLocked(waiting_.front())) {
      TakeWaitingLocked(waiting_.begin());
      ring = true;
    }
    any_waiting_.store(!waiting_.empty(), std::memory_order_release);
    ring = ring && writer_.MustRing();
  }
  if (ring) RingPeer();
}

void SameHostLink::Forget(uint64_t call) {
  Region region;
  LinkMessage unsent;
  async::MutexLock lock(&mutex_);
  if (auto it = regions_.find(call); it != regions_.end()) {
    RevokeLocked(it->second.slot);
    region = std::move(it->second);
    regions_.erase(it);
  }
  if (waiting_.empty()) return;
  const auto is_of_call = [&](const LinkMessage& message) {
    return message.call == call &&
           message.kind != v1::SameHostFrame::KIND_CANCEL &&
           message.kind != v1::SameHostFrame::KIND_RELEASE;
  };
  if (auto it = std::find_if(waiting_.begin(), waiting_.end(), is_of_call);
      it != waiting_.end()) {
    unsent = TakeWaitingLocked(it);
  }
  // There may be a slot now.
  if (!waiting_.empty()) loop_.Wake();
}

absl::Status SameHostLink::ReadChunks(v1::SameHostFrame& frame,
                                      Payload& payload) {
  std::shared_ptr<IncomingRegion> region;
  const bool has_list = frame.has_chunk_list();
  const auto is_remote = [](const v1::SameHostChunk& chunk) {
    return chunk.address() != 0;
  };
  if (has_list ||
      std::any_of(frame.chunks().begin(), frame.chunks().end(), is_remote)) {
    if (frame.slot() >= kNumSlots) {
      return absl::InternalError("a slot that does not exist");
    }
    region = std::make_shared<IncomingRegion>(segment_, peer_, loop_.copier(),
                                              in_.slots[frame.slot()],
                                              frame.slot_value());
    if (frame.kind() == v1::SameHostFrame::KIND_REPLY) {
      region->AtEnd([weak = weak_from_this(), call = frame.call()] {
        if (auto link = weak.lock()) {
          link->Send({.kind = v1::SameHostFrame::KIND_RELEASE, .call = call});
        }
      });
    }
  }
  v1::SameHostChunkList list;
  if (has_list) {
    const v1::SameHostChunk& at = frame.chunk_list();
    if (at.size() > kMaxChunkListBytes) {
      return absl::ResourceExhaustedError("a message in too many pieces");
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
    if (is_remote(chunk)) {
      payload.Append(std::make_shared<RemoteChunk>(region, chunk.address()),
                     size);
    } else {
      payload.Append(std::move(*chunk.mutable_content()));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<LinkMessage> SameHostLink::Read(v1::SameHostFrame& frame) {
  LinkMessage message;
  message.kind = frame.kind();
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
      message.error = absl::UnknownError("the peer sent an error without code");
    }
  } else if (absl::Status status = ReadChunks(frame, message.payload);
             !status.ok()) {
    if (absl::IsInternal(status)) return status;
    message.payload = Payload();
    message.error = std::move(status);
  }
  return message;
}

std::optional<SameHostLink::Work> SameHostLink::Receive() {
  if (!reader_.HasFrame() || ended_.load(std::memory_order_acquire) ||
      receiving_.exchange(true, std::memory_order_acquire)) {
    return std::nullopt;
  }
  std::optional<Work> work;
  absl::Status broken;
  const RingResult result = reader_.Read(incoming_);
  const bool ring = result == RingResult::kDone && reader_.MustRing();
  if (result == RingResult::kBroken) {
    broken = absl::InternalError("the peer broke the shared ring");
  } else if (result == RingResult::kDone) {
    if (!incoming_frame_.ParseFromString(incoming_)) {
      broken = absl::InternalError("the peer sent a malformed frame");
    } else if (absl::StatusOr<LinkMessage> message = Read(incoming_frame_);
               message.ok()) {
      work = handler_->OnMessage(*std::move(message));
    } else {
      broken = message.status();
    }
  }
  receiving_.store(false, std::memory_order_release);
  if (ring) RingPeer();
  if (!broken.ok()) Close(std::move(broken));
  return work;
}

bool SameHostLink::Poll() {
  if (any_waiting_.load(std::memory_order_acquire)) SendWaiting();
  std::optional<Work> work = Receive();
  if (!work.has_value()) return false;
  if (work->run != nullptr) std::move(work->run)();
  return true;
}

void SameHostLink::PollFor(uint64_t call, absl::Duration spin,
                           const std::function<bool()>& done) {
  if (ended_.load(std::memory_order_acquire)) return;
  const async::MonotonicTime until =
      async::AddDelay(std::chrono::steady_clock::now(), spin);
  // Who polls for ever shares its core with threads that do as well.
  const bool may_sleep = until != async::kNever;
  BeginPolling();
  for (int i = 1;; ++i) {
    if (std::optional<Work> work = Receive()) {
      if (work->run == nullptr) continue;
      if (work->call == call) {
        std::move(work->run)();
        break;
      }
      loop_.Post(std::move(work->run));
    }
    if (done() || ended_.load(std::memory_order_acquire)) break;
    if (i % kPollsPerLook == 0 &&
        ((may_sleep && reader_.WriterWasHere() && !MakeWay()) ||
         std::chrono::steady_clock::now() >= until)) {
      break;
    }
    async::CpuRelax();
  }
  if (EndPolling()) loop_.Wake();
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
    num_answers_waiting_.store(0, std::memory_order_relaxed);
    for (const auto& [call, region] : regions) RevokeLocked(region.slot);
  }
  loop_.Unwatch(socket_.get());
  loop_.Remove(this);
  shutdown(socket_.get(), SHUT_RDWR);
  // Not in the thread that closes.
  loop_.Post([handler = handler_, status = std::move(status)] {
    handler->OnEnd(status);
  });
}

}  // namespace hawser::rpc
