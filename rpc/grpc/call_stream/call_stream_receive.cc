// Receiving of messages, and their work.

#include <chrono>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "async/thread_pool.h"
#include "rpc/grpc/call_stream/call_stream.h"

namespace hawser::rpc {
namespace {

// Frames fill at most two batches: one that is not full and a long message.
constexpr size_t kMaxFramesBytes = size_t{1} << 20;

// Fragments that wait while another one is copied. Further ones wait in gRPC.
constexpr size_t kMaxFragmentsWaiting = 2;

// The stream whose PollFor the calling thread is in.
thread_local const CallStream* polled_stream = nullptr;

}  // namespace

void CallStream::ReadNext() {
  {
    async::MutexLock lock(&mutex_);
    if (fragments_.size() >= kMaxFragmentsWaiting) return;
    if (std::exchange(reading_, true)) return;
  }
  if (ended()) {
    OnReadsEnded();
    return;
  }
  {
    Gate::Entry entry(options_.gate.get());
    if (entry) {
      read_.self = shared_from_this();
      StartRead(&incoming_, &read_);
      return;
    }
  }
  End(absl::CancelledError("the transport was shut down"));
}

void CallStream::OnRead(bool ok) {
  if (!ok || ended()) {
    OnReadsEnded();
    return;
  }
  std::vector<::grpc::Slice> slices;
  const bool readable = incoming_.Valid() && incoming_.Dump(&slices).ok();
  incoming_.Clear();
  std::optional<ReceivedFragment> fragment;
  // Only clients receive fragments.
  if (options_.budget != nullptr) fragment = ParseFragmentMessage(slices);
  const bool is_fragment = fragment.has_value();
  absl::Status status;
  if (!readable) {
    status = absl::InternalError("a message of a call stream cannot be read");
  } else if (!is_fragment) {
    status = ReceiveFrames(slices);
  }
  {
    // Other threads may read on now.
    async::MutexLock lock(&mutex_);
    reading_ = false;
    if (is_fragment) fragments_.push_back(*std::move(fragment));
  }
  if (!status.ok()) {
    Close(std::move(status));
    ReadNext();
    return;
  }
  if (is_fragment && !AssembleFragments()) return;
  // In PollFor, the thread goes on by itself.
  if (polled_stream == this) return;
  PostRunReady();
}

bool CallStream::AssembleFragments() {
  bool any_work = false;
  {
    async::MutexLock lock(&mutex_);
    if (assembling_) return false;
    assembling_ = true;
  }
  while (true) {
    // The peer sends the next fragment while this one is copied.
    ReadNext();
    ReceivedFragment fragment;
    {
      async::MutexLock lock(&mutex_);
      if (fragments_.empty()) {
        assembling_ = false;
        return any_work;
      }
      fragment = std::move(fragments_.front());
      fragments_.pop_front();
    }
    const absl::StatusOr<bool> work = ReceiveFragment(std::move(fragment));
    if (!work.ok()) Close(work.status());
    any_work |= work.value_or(false);
    async::MutexLock lock(&mutex_);
    if (!work.ok()) fragments_.clear();
    if (polled_stream == this && !fragments_.empty()) {
      // They may be of replies for which the calling thread does not wait.
      assembling_ = false;
      options_.poller->Post(
          [self = shared_from_this()] {
            if (self->AssembleFragments()) self->RunReady();
          },
          /*brief=*/true);
      return any_work;
    }
  }
}

void CallStream::PostRunReady(bool brief) {
  options_.poller->Post([self = shared_from_this()] { self->RunReady(); },
                        brief);
}

absl::Status CallStream::ReceiveFrames(
    const std::vector<::grpc::Slice>& slices) {
  std::string joined;
  std::string_view bytes;
  size_t size = 0;
  for (const ::grpc::Slice& slice : slices) size += slice.size();
  if (size > kMaxFramesBytes) {
    return absl::InternalError(absl::StrCat("a message of a call stream has ",
                                            size, " bytes, above the limit of ",
                                            kMaxFramesBytes));
  }
  if (slices.size() == 1) {
    bytes = {reinterpret_cast<const char*>(slices[0].begin()),
             slices[0].size()};
  } else {
    joined.reserve(size);
    for (const ::grpc::Slice& slice : slices) {
      joined.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
    }
    bytes = joined;
  }
  ASSIGN_OR_RETURN(std::vector<LinkMessage> messages, ParseFrames(bytes));
  for (LinkMessage& message : messages) {
    LinkWork work = handler_->OnMessage(std::move(message));
    if (work.run == nullptr) continue;
    num_received_.fetch_add(1, std::memory_order_relaxed);
    async::MutexLock lock(&mutex_);
    ready_.push_back(std::move(work));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> CallStream::ReceiveFragment(ReceivedFragment received) {
  LinkMessage reply{.kind = LinkMessage::Kind::kReply, .call = received.call};
  {
    async::MutexLock lock(&assembly_mutex_);
    if (received.first) {
      auto [place, is_new] = assemblers_.try_emplace(received.call);
      if (!is_new) {
        return absl::InternalError("a reply in fragments begins twice");
      }
      place->second = std::make_unique<MessageAssembler>(
          options_.max_message_bytes, options_.budget, options_.peer);
      // Checked only now: whoever gives the call up first takes it out of the
      // handler, then calls Forget.
      if (!handler_->Expects(received.call)) assemblers_.erase(received.call);
    }
    const auto found = assemblers_.find(received.call);
    // The call has ended.
    if (found == assemblers_.end()) return false;
    absl::StatusOr<bool> whole = found->second->Add(received.fragment);
    if (absl::IsInternal(whole.status())) return whole.status();
    if (whole.ok() && !*whole) return false;
    if (whole.ok()) {
      reply.payload = found->second->Take();
    } else {
      reply.error = whole.status();
    }
    assemblers_.erase(found);
  }
  LinkWork work = handler_->OnMessage(std::move(reply));
  if (work.run == nullptr) return false;
  num_received_.fetch_add(1, std::memory_order_relaxed);
  async::MutexLock lock(&mutex_);
  ready_.push_back(std::move(work));
  return true;
}

void CallStream::PostReady() {
  {
    async::MutexLock lock(&mutex_);
    if (ready_.empty()) return;
  }
  PostRunReady(/*brief=*/false);
}

bool CallStream::more_waiting() {
  async::MutexLock lock(&mutex_);
  return !ready_.empty();
}

std::optional<LinkWork> CallStream::TakeReadyLocked(uint64_t call) {
  for (auto work = ready_.begin(); work != ready_.end(); ++work) {
    if (work->call != call) continue;
    LinkWork taken = std::move(*work);
    ready_.erase(work);
    return taken;
  }
  return std::nullopt;
}

void CallStream::RunReady() {
  const bool waits = options_.poller->PollsInEvent();
  bool any = false;
  {
    async::MutexLock lock(&mutex_);
    running_ = std::thread::id();
    any = !ready_.empty();
    if (!any) {
      // The thread that runs the last work may be blocked.
      WriteNextLocked();
    } else if (!waits && !async::ThreadPool::IsNearlyExhausted()) {
      // Otherwise no thread may be left to go on if this one blocks.
      running_ = std::this_thread::get_id();
    }
  }
  if (!any) {
    ReadNext();
    return;
  }
  if (waits) {
    PostRunReady(/*brief=*/false);
    return;
  }
  // Goes on in place of this thread if it blocks in work.
  PostRunReady();
  while (true) {
    LinkWork work;
    {
      async::MutexLock lock(&mutex_);
      if (ready_.empty()) {
        if (running_ == std::this_thread::get_id())
          running_ = std::thread::id();
        WriteNextLocked();
        break;
      }
      work = std::move(ready_.front());
      ready_.pop_front();
    }
    if (work.call != awaited_call_.load(std::memory_order_relaxed)) {
      options_.poller->EndStreak();
    }
    std::move(work.run)();
    num_run_.fetch_add(1, std::memory_order_release);
  }
  ReadNext();
}

void CallStream::PollFor(uint64_t call, absl::Duration spin,
                         absl::FunctionRef<bool()> stop) {
  {
    // The call may have been made by work.
    async::MutexLock lock(&mutex_);
    if (running_ == std::this_thread::get_id()) running_ = std::thread::id();
    WriteNextLocked();
  }
  if (spin <= absl::ZeroDuration()) return;
  const auto done = [&] { return stop() || !handler_->Expects(call); };
  const auto pending = [&] { return !done() && !ended(); };
  if (options_.poller->PollsInThisThread()) {
    if (std::optional<LinkWork> work = PollInEvent(call, pending)) {
      std::move(work->run)();
      num_run_.fetch_add(1, std::memory_order_release);
    }
    return;
  }
  if (!spin_policy_.Begin()) return;
  const async::MonotonicTime until =
      async::AddDelay(std::chrono::steady_clock::now(), spin);
  std::optional<LinkWork> work;
  Poller::Polled polled = Poller::Polled::kHandled;
  awaited_call_.store(call, std::memory_order_relaxed);
  while (!work.has_value() && polled != Poller::Polled::kInVain && pending() &&
         std::chrono::steady_clock::now() < until) {
    ReadNext();
    const CallStream* const outer = std::exchange(polled_stream, this);
    polled = options_.poller->PollFor(this, pending, spin);
    polled_stream = outer;
    if (polled == Poller::Polled::kHandled) {
      async::MutexLock lock(&mutex_);
      work = TakeReadyLocked(call);
    } else if (polled == Poller::Polled::kByThreads) {
      options_.poller->set_awaited(this);
      SpinUntilRun(until, done);
      options_.poller->set_awaited(nullptr);
    }
  }
  ReadNext();
  PostReady();
  spin_policy_.End();
  if (!work.has_value()) return;
  std::move(work->run)();
  num_run_.fetch_add(1, std::memory_order_release);
}

std::optional<LinkWork> CallStream::PollInEvent(
    uint64_t call, absl::FunctionRef<bool()> pending) {
  std::optional<LinkWork> work;
  Poller::Polled polled = Poller::Polled::kHandled;
  bool others = false;
  while (!work.has_value() && !others && polled == Poller::Polled::kHandled &&
         pending()) {
    ReadNext();
    const CallStream* const outer = std::exchange(polled_stream, this);
    polled = options_.poller->PollInEvent(this, pending);
    polled_stream = outer;
    async::MutexLock lock(&mutex_);
    work = TakeReadyLocked(call);
    others = !ready_.empty();
  }
  ReadNext();
  PostReady();
  return work;
}

void CallStream::SpinUntilRun(async::MonotonicTime until,
                              absl::FunctionRef<bool()> done) {
  uint64_t seen = num_received_.load(std::memory_order_acquire);
  bool received = done();
  while (!ended() && !options_.poller->yielded() &&
         std::chrono::steady_clock::now() < until) {
    // Work runs in the order of its messages.
    if (received && num_run_.load(std::memory_order_acquire) >= seen) return;
    // The message may come from a thread that waits for this processor.
    std::this_thread::yield();
    const uint64_t now = num_received_.load(std::memory_order_acquire);
    if (received || now == seen) continue;
    seen = now;
    received = done();
  }
}

}  // namespace hawser::rpc
