#include "collectives/host/mailboxes.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "async/wait_poller.h"

namespace hawser::collectives {

// The mailboxes, for futures that may outlive them: a thread that waits for one
// moves bytes.
class Mailboxes::Poller final : public async::WaitPoller {
 public:
  explicit Poller(Mailboxes& boxes) : boxes_(boxes) {}

  void PollUntil(absl::FunctionRef<bool()> done) override {
    if (!Enter()) return;
    polling_.fetch_add(1, std::memory_order_seq_cst);
    boxes_.Poll(done);
    polling_.fetch_sub(1, std::memory_order_seq_cst);
    boxes_.OnPolled();
    Leave();
  }
  // A future was cancelled, whose memory must not be used any more.
  void OnCancel() {
    if (!Enter()) return;
    (void)boxes_.wait_.Abort(
        absl::CancelledError("a send or receive was cancelled"));
    boxes_.FailAll(boxes_.wait_.status());
    Leave();
  }

  bool polling() const { return polling_.load(std::memory_order_seq_cst) > 0; }
  bool stopped() {
    const async::MutexLock lock(&mutex_);
    return stopped_;
  }
  // Refuses new uses, and waits for the present ones.
  void Stop() {
    const async::MutexLock lock(&mutex_);
    stopped_ = true;
    while (uses_ > 0) unused_.Wait(&mutex_);
  }

 private:
  bool Enter() {
    const async::MutexLock lock(&mutex_);
    if (stopped_) return false;
    ++uses_;
    return true;
  }
  void Leave() {
    const async::MutexLock lock(&mutex_);
    if (--uses_ == 0) unused_.NotifyAll();
  }

  Mailboxes& boxes_;
  std::atomic<int> polling_ = 0;
  async::Mutex mutex_;
  async::CondVar unused_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  int uses_ ABSL_GUARDED_BY(mutex_) = 0;
};

Mailboxes::Mailboxes(SharedWait& wait)
    : wait_(wait),
      rank_(wait.rank()),
      size_(wait.region().layout().size),
      poller_(std::make_shared<Poller>(*this)),
      outgoing_(static_cast<size_t>(size_)),
      sources_(static_cast<size_t>(size_)) {
  for (int other = 0; other < size_; ++other) {
    pipes_to_.emplace_back(wait.region(), rank_, other);
    pipes_from_.emplace_back(wait.region(), other, rank_);
  }
}

Mailboxes::~Mailboxes() {
  std::thread thread;
  {
    const async::MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.NotifyAll();
    thread = std::move(thread_);
  }
  Ring(rank_);
  poller_->Stop();
  if (thread.joinable()) thread.join();
  FailAll(absl::CancelledError("the process group was destroyed"));
}

async::Future<void> Mailboxes::Send(ConstBytes data, int to, uint32_t tag,
                                    async::MonotonicTime deadline) {
  Outgoing send;
  send.header = {.bytes = data.size(), .tag = tag};
  send.rest = data;
  send.to = to;
  send.deadline = deadline;
  async::Future<void> sent = send.done.future();
  sent.SetWaitPoller(poller_);
  send.done.OnCancel([poller = poller_] { poller->OnCancel(); });
  if (absl::Status status = wait_.status(); !status.ok()) {
    send.done.Set(std::move(status));
    return sent;
  }
  {
    const async::MutexLock lock(&mutex_);
    outgoing_[static_cast<size_t>(to)].push_back(std::move(send));
    ++num_outgoing_;
  }
  MoveBytes();
  if (!sent.ready()) WakeThread();
  return sent;
}

async::Future<int> Mailboxes::Receive(MutableBytes data, int from, uint32_t tag,
                                      async::MonotonicTime deadline) {
  Incoming receive;
  receive.data = data;
  receive.from = from;
  receive.tag = tag;
  receive.deadline = deadline;
  async::Future<int> received = receive.done.future();
  received.SetWaitPoller(poller_);
  receive.done.OnCancel([poller = poller_] { poller->OnCancel(); });
  if (absl::Status status = wait_.status(); !status.ok()) {
    receive.done.Set(std::move(status));
    return received;
  }
  Completions completions;
  {
    const async::MutexLock lock(&mutex_);
    if (!TakeKept(receive, completions)) {
      incoming_.push_back(std::move(receive));
      ++num_incoming_;
    }
  }
  for (auto& complete : completions) complete();
  if (!received.ready()) MoveBytes();
  if (!received.ready()) WakeThread();
  return received;
}

bool Mailboxes::TakeKept(Incoming& receive, Completions& completions) {
  for (int from = 0; from < size_; ++from) {
    if (receive.from != Backend::kAnyRank && receive.from != from) continue;
    std::deque<Kept>& kept = sources_[static_cast<size_t>(from)].kept;
    const auto found = std::find_if(
        kept.begin(), kept.end(),
        [&](const Kept& message) { return message.tag == receive.tag; });
    if (found == kept.end()) continue;
    absl::Status mismatch = MismatchOf(receive, from, found->data.size());
    if (mismatch.ok() && !found->data.empty()) {
      std::memcpy(receive.data.data(), found->data.data(), found->data.size());
    }
    kept.erase(found);
    completions.emplace_back([done = std::move(receive.done), from,
                              mismatch = std::move(mismatch)]() mutable {
      if (mismatch.ok()) {
        done.Set(from);
      } else {
        done.Set(mismatch);
      }
    });
    return true;
  }
  return false;
}

absl::Status Mailboxes::MismatchOf(const Incoming& receive, int from,
                                   uint64_t bytes) const {
  if (bytes == receive.data.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "rank ", from, " has sent ", bytes, " bytes with tag ", receive.tag,
      " to rank ", rank_, ", which receives ", receive.data.size()));
}

bool Mailboxes::MoveBytes() {
  Completions completions;
  std::vector<int> ring;
  {
    const async::MutexLock lock(&mutex_);
    for (int other = 0; other < size_; ++other) {
      const bool wrote = WriteTo(other, completions);
      const bool read = ReadFrom(other, completions);
      if (wrote || read) ring.push_back(other);
    }
  }
  for (const int other : ring) Ring(other);
  for (auto& complete : completions) complete();
  return !ring.empty();
}

bool Mailboxes::WriteTo(int to, Completions& completions) {
  std::deque<Outgoing>& sends = outgoing_[static_cast<size_t>(to)];
  MessagePipe& pipe = pipes_to_[static_cast<size_t>(to)];
  bool any = false;
  while (!sends.empty()) {
    Outgoing& send = sends.front();
    const auto header = std::as_bytes(std::span(&send.header, 1));
    while (send.header_sent < header.size()) {
      const size_t sent = pipe.Write(header.subspan(send.header_sent));
      if (sent == 0) return any;
      send.header_sent += sent;
      any = true;
    }
    const size_t sent = pipe.Write(send.rest);
    send.rest = send.rest.subspan(sent);
    any = any || sent > 0;
    if (!send.rest.empty()) return any;
    completions.emplace_back([done = std::move(send.done)]() mutable {
      done.Set(absl::OkStatus());
    });
    sends.pop_front();
    --num_outgoing_;
  }
  return any;
}

bool Mailboxes::BeginMessage(int from, Source& source) {
  const auto meant = [&](const Incoming& receive) {
    return receive.from == Backend::kAnyRank || receive.from == from;
  };
  const auto found =
      std::find_if(incoming_.begin(), incoming_.end(), [&](const Incoming& r) {
        return meant(r) && r.tag == source.header.tag;
      });
  if (found != incoming_.end()) {
    source.mismatch = MismatchOf(*found, from, source.header.bytes);
    source.receive = std::move(*found);
    incoming_.erase(found);
  } else if (std::none_of(incoming_.begin(), incoming_.end(), meant)) {
    return false;
  }
  source.reading = true;
  source.done = 0;
  if (!source.receive.has_value() || !source.mismatch.ok()) {
    source.aside.resize(source.header.bytes);
  }
  return true;
}

bool Mailboxes::ReadFrom(int from, Completions& completions) {
  Source& source = sources_[static_cast<size_t>(from)];
  MessagePipe& pipe = pipes_from_[static_cast<size_t>(from)];
  bool any = false;
  while (true) {
    const auto header = std::as_writable_bytes(std::span(&source.header, 1));
    while (source.header_bytes < header.size()) {
      const size_t read = pipe.Read(header.subspan(source.header_bytes));
      if (read == 0) return any;
      source.header_bytes += read;
      any = true;
    }
    if (!source.reading && !BeginMessage(from, source)) return any;
    const bool direct = source.receive.has_value() && source.mismatch.ok();
    const MutableBytes to =
        direct ? source.receive->data : MutableBytes(source.aside);
    const size_t read = pipe.Read(to.subspan(source.done));
    source.done += read;
    any = any || read > 0;
    if (source.done < to.size()) return any;
    EndMessage(from, source, completions);
    any = true;
  }
}

void Mailboxes::EndMessage(int from, Source& source, Completions& completions) {
  if (source.receive.has_value()) {
    completions.emplace_back([done = std::move(source.receive->done), from,
                              mismatch = std::move(source.mismatch)]() mutable {
      if (mismatch.ok()) {
        done.Set(from);
      } else {
        done.Set(mismatch);
      }
    });
    --num_incoming_;
  } else {
    source.kept.push_back(
        {.tag = source.header.tag, .data = std::move(source.aside)});
  }
  source.receive.reset();
  source.mismatch = absl::OkStatus();
  source.aside = {};
  source.header_bytes = 0;
  source.reading = false;
}

void Mailboxes::Ring(int rank) {
  RankState& state = wait_.region().rank(rank);
  state.doorbell.fetch_add(1, std::memory_order_seq_cst);
  SharedWait::Wake(state.doorbell, state.doorbell_sleepers);
}

void Mailboxes::Poll(absl::FunctionRef<bool()> done) {
  async::MonotonicTime last = std::chrono::steady_clock::now();
  while (!done()) {
    if (!wait_.status().ok() || poller_->stopped()) break;
    if (MoveBytes()) {
      last = std::chrono::steady_clock::now();
    } else if (!wait_.Pause(last)) {
      break;
    }
  }
}

void Mailboxes::OnPolled() {
  {
    const async::MutexLock lock(&mutex_);
    if (idle()) return;
  }
  // The thread has not looked at the rings while another one polled.
  WakeThread();
}

void Mailboxes::WakeThread() {
  {
    const async::MutexLock lock(&mutex_);
    if (stopping_) return;
    if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
    changed_.NotifyAll();
  }
  Ring(rank_);
}

async::MonotonicTime Mailboxes::NextDeadline() {
  async::MonotonicTime next = async::kNever;
  for (const auto& sends : outgoing_) {
    for (const Outgoing& send : sends) next = std::min(next, send.deadline);
  }
  for (const Incoming& receive : incoming_) {
    next = std::min(next, receive.deadline);
  }
  for (const Source& source : sources_) {
    if (source.receive.has_value()) {
      next = std::min(next, source.receive->deadline);
    }
  }
  return next;
}

absl::Status Mailboxes::LateOperation() {
  const async::MonotonicTime now = std::chrono::steady_clock::now();
  for (const auto& sends : outgoing_) {
    for (const Outgoing& send : sends) {
      if (send.deadline > now) continue;
      return absl::DeadlineExceededError(absl::StrCat(
          "rank ", send.to, " has not received the message of ",
          send.header.bytes, " bytes with tag ", send.header.tag, " in time"));
    }
  }
  for (const Incoming& receive : incoming_) {
    if (receive.deadline > now) continue;
    return absl::DeadlineExceededError(absl::StrCat(
        receive.from == Backend::kAnyRank ? std::string("no rank")
                                          : absl::StrCat("rank ", receive.from),
        receive.from == Backend::kAnyRank ? " has" : " has not",
        " sent a message with tag ", receive.tag, " in time"));
  }
  return absl::DeadlineExceededError("a message did not arrive whole in time");
}

absl::Status Mailboxes::CheckPeers() {
  for (int other = 0; other < size_; ++other) {
    if (!outgoing_[static_cast<size_t>(other)].empty()) {
      RETURN_IF_ERROR(wait_.CheckRank(other));
    }
  }
  const auto check = [&](int from) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    // It may have sent before it left.
    return pipes_from_[static_cast<size_t>(from)].available() > 0
               ? absl::OkStatus()
               : wait_.CheckRank(from);
  };
  for (const Incoming& receive : incoming_) {
    if (receive.from != Backend::kAnyRank) RETURN_IF_ERROR(check(receive.from));
  }
  for (int from = 0; from < size_; ++from) {
    if (sources_[static_cast<size_t>(from)].receive.has_value()) {
      RETURN_IF_ERROR(check(from));
    }
  }
  return absl::OkStatus();
}

void Mailboxes::Run() {
  while (true) {
    const uint32_t doorbell =
        wait_.region().rank(rank_).doorbell.load(std::memory_order_seq_cst);
    {
      const async::MutexLock lock(&mutex_);
      while (!stopping_ && idle()) changed_.Wait(&mutex_);
      if (stopping_) return;
    }
    if (!wait_.status().ok()) {
      FailAll(wait_.status());
      continue;
    }
    // A thread that waits for an operation does the work.
    if (!poller_->polling() && MoveBytes()) continue;
    WaitForBytes(doorbell);
  }
}

void Mailboxes::WaitForBytes(uint32_t doorbell) {
  RankState& state = wait_.region().rank(rank_);
  async::MonotonicTime deadline;
  {
    const async::MutexLock lock(&mutex_);
    deadline = NextDeadline();
  }
  // On error the group is aborted, which Run sees.
  (void)wait_.Until(
      [&] {
        return state.doorbell.load(std::memory_order_acquire) != doorbell;
      },
      state.doorbell, state.doorbell_sleepers, deadline,
      [&] {
        const async::MutexLock lock(&mutex_);
        return CheckPeers();
      },
      [&] {
        const async::MutexLock lock(&mutex_);
        return LateOperation();
      });
}

void Mailboxes::OnAborted() { FailAll(wait_.status()); }

void Mailboxes::FailAll(const absl::Status& status) {
  std::vector<async::Promise<void>> sends;
  std::vector<async::Promise<int>> receives;
  {
    const async::MutexLock lock(&mutex_);
    for (auto& queue : outgoing_) {
      for (Outgoing& send : queue) sends.push_back(std::move(send.done));
      queue.clear();
    }
    for (Incoming& receive : incoming_) {
      receives.push_back(std::move(receive.done));
    }
    incoming_.clear();
    for (Source& source : sources_) {
      if (source.receive.has_value()) {
        receives.push_back(std::move(source.receive->done));
        source.receive.reset();
      }
      source.reading = false;
    }
    num_outgoing_ = num_incoming_ = 0;
  }
  for (auto& send : sends) send.Set(status);
  for (auto& receive : receives) receive.Set(status);
}

}  // namespace hawser::collectives
