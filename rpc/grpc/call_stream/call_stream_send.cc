// Sending of messages.

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rpc/grpc/call_stream/call_stream.h"
#include "rpc/link/copy_time.h"

namespace hawser::rpc {
namespace {

// Twice the limit on one client's calls, since replies to rejected calls wait
// as well.
constexpr size_t kMaxRepliesWaiting = size_t{1} << 17;
// Short messages that may wait beside the quota, so that errors of calls that
// it refuses arrive.
constexpr size_t kBatchedBesideQuota = size_t{1} << 20;
// The copies of a reply on its way: two by the kernel, and two by the client.
constexpr int kCopiesOverSocket = 4;
// Replies that take no longer than the time for which polling threads spin
// after each message.
constexpr size_t kMinAwaited = size_t{16} << 10;

}  // namespace

void CallStream::Send(LinkMessage message) {
  // Nothing is kept for the peer to read later.
  if (message.kind == LinkMessage::Kind::kRelease) return;
  async::MutexLock lock(&mutex_);
  if (ended()) return;
  EnqueueLocked(std::move(message));
  const bool more_follows = running_ == std::this_thread::get_id() &&
                            !batches_.empty() && !batches_.front().full();
  if (!more_follows) WriteNextLocked();
}

void CallStream::SendConfirmation() {
  async::MutexLock lock(&mutex_);
  batches_.emplace_front();
  WriteNextLocked();
}

void CallStream::EnqueueLocked(LinkMessage message) {
  const bool is_reply = message.kind == LinkMessage::Kind::kReply;
  if (is_reply) num_replies_waiting_.fetch_add(1, std::memory_order_relaxed);
  const size_t size = message.payload.size();
  if (size > kMaxFrameMessage) {
    const absl::Status admitted = unread_.Add(size);
    if (admitted.ok()) {
      // As requests: short ones would gain less from the overlap of copies than
      // another message costs.
      const size_t fragment_bytes =
          size <= kMaxWholeRequest ? kMaxWholeRequest : kFragmentBytes;
      long_replies_.push_back(
          {message.call, size,
           MessageFragments(std::move(message.payload), fragment_bytes)});
      return;
    }
    message.payload = Payload();
    message.error =
        absl::Status(admitted.code(),
                     absl::StrCat("the reply of ", size,
                                  " bytes is dropped: ", admitted.message()));
  }
  if (batches_.empty() || batches_.back().full()) batches_.emplace_back();
  const size_t before = batches_.back().bytes();
  batches_.back().Append(message);
  const size_t added = batches_.back().bytes() - before;
  batched_bytes_ += added;
  absl::Status status = unread_.Add(added);
  if (batched_bytes_ <= kBatchedBesideQuota) status = absl::OkStatus();
  if (num_replies_waiting() > kMaxRepliesWaiting) {
    status = absl::ResourceExhaustedError(absl::StrCat(
        "the peer has not read ", num_replies_waiting(), " replies"));
  }
  if (!is_reply || status.ok()) return;
  EndStreamLocked(status);
  EndLocked(status);
}

std::optional<::grpc::ByteBuffer> CallStream::NextMessageLocked() {
  const bool frames =
      !batches_.empty() && (long_replies_.empty() || !last_was_frames_);
  last_was_frames_ = frames;
  if (frames) {
    const FrameBatch batch = std::move(batches_.front());
    batches_.pop_front();
    batched_bytes_ -= batch.bytes();
    written_bytes_ = batch.bytes();
    num_replies_waiting_.fetch_sub(batch.num_replies(),
                                   std::memory_order_relaxed);
    return batch.ToByteBuffer();
  }
  if (long_replies_.empty()) return std::nullopt;
  LongReply reply = std::move(long_replies_.front());
  long_replies_.pop_front();
  ::grpc::ByteBuffer message =
      ToFragmentMessage(reply.call, reply.fragments.Next());
  if (reply.fragments.AtEnd()) {
    num_replies_waiting_.fetch_sub(1, std::memory_order_relaxed);
    written_bytes_ = reply.bytes;
  } else {
    long_replies_.push_back(std::move(reply));
  }
  return message;
}

void CallStream::WriteNextLocked() {
  if (writing_ || ended()) return;
  Gate::Entry entry(options_.gate.get());
  if (!entry) return;
  const size_t replies = num_replies_waiting();
  const std::optional<::grpc::ByteBuffer> message = NextMessageLocked();
  if (!message.has_value()) return;
  if (num_replies_waiting() < replies && message->Length() >= kMinAwaited) {
    // The caller's next request comes when it has copied this.
    options_.poller->ExpectEventAfter(kCopiesOverSocket *
                                      CopyTime(message->Length()));
  }
  writing_ = true;
  written_.self = shared_from_this();
  StartWrite(*message, &written_);
}

void CallStream::OnWritten(bool ok) {
  async::MutexLock lock(&mutex_);
  writing_ = false;
  unread_.Remove(std::exchange(written_bytes_, 0));
  if (ended()) {
    OnLastWriteLocked();
  } else if (ok) {
    // Otherwise the stream is broken, and the read in progress says so.
    WriteNextLocked();
  }
}

void CallStream::Forget(uint64_t call) {
  std::unique_ptr<MessageAssembler> received;
  {
    async::MutexLock lock(&assembly_mutex_);
    const auto found = assemblers_.find(call);
    if (found != assemblers_.end()) {
      received = std::move(found->second);
      assemblers_.erase(found);
    }
  }
  async::MutexLock lock(&mutex_);
  if (long_replies_.empty()) return;
  const auto sent = std::find_if(
      long_replies_.begin(), long_replies_.end(),
      [call](const LongReply& reply) { return reply.call == call; });
  if (sent == long_replies_.end()) return;
  unread_.Remove(sent->bytes);
  long_replies_.erase(sent);
  num_replies_waiting_.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace hawser::rpc
