#include "collectives/gloo/messages.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hawser::collectives {
namespace {

template <class Completions>
void RunAll(Completions& completions) {
  for (auto& each : completions) each();
  completions.clear();
}

}  // namespace

struct Messages::Handle {
  async::Mutex mutex;
  Mesh* mesh ABSL_GUARDED_BY(mutex) = nullptr;
};

Messages::Messages(Mesh& mesh)
    : mesh_(mesh),
      handle_(std::make_shared<Handle>()),
      next_number_(static_cast<size_t>(mesh.size())) {
  {
    const async::MutexLock lock(&handle_->mutex);
    handle_->mesh = &mesh;
  }
  thread_ = std::thread([this] { Run(); });
}

Messages::~Messages() {
  {
    const async::MutexLock lock(&handle_->mutex);
    handle_->mesh = nullptr;
  }
  bool is_busy = false;
  {
    const async::MutexLock lock(&mutex_);
    stopping_ = true;
    // A transfer that runs was taken out of its queue.
    is_busy = !outgoing_.empty() || !incoming_.empty();
    changed_.NotifyAll();
  }
  if (is_busy) {
    (void)mesh_.Fail(absl::AbortedError("the process group was destroyed"));
  }
  thread_.join();
  EndAll(absl::CancelledError("the process group was destroyed"));
}

template <class T>
void Messages::CancelEndsGroup(async::Promise<T>& promise) {
  promise.OnCancel([handle = handle_] {
    const async::MutexLock lock(&handle->mutex);
    if (handle->mesh == nullptr) return;
    (void)handle->mesh->Fail(
        absl::CancelledError("a send or receive was cancelled"));
  });
}

async::Future<void> Messages::Send(ConstBytes data, int to, uint32_t tag,
                                   async::MonotonicTime deadline) {
  Outgoing send{.data = data, .tag = tag, .deadline = deadline};
  async::Future<void> done = send.done.future();
  CancelEndsGroup(send.done);
  Completions completions;
  {
    const async::MutexLock lock(&mutex_);
    if (!failure_.ok()) return async::MakeReadyFuture<void>(failure_);
    const uint64_t number = next_number_[static_cast<size_t>(to)]++;
    Mesh::Frame frame{.kind = Mesh::FrameKind::kMessage,
                      .tag = tag,
                      .number = number,
                      .bytes = data.size()};
    if (to != mesh_.rank()) {
      const bool is_short = data.size() <= Mesh::kInlineBytes;
      // Frames of messages go out in the order of their numbers.
      mesh_.SendFrame(to, frame, is_short ? data : ConstBytes());
      if (!is_short) {
        send.transfer = std::make_unique<Transfer>(
            mesh_, Transfer::Direction::kSend, to,
            MutableBytes(const_cast<std::byte*>(data.data()), data.size()),
            Transfer::Use::kMessage, number);
      }
    }
    outgoing_.emplace(OutgoingKey(to, number), std::move(send));
    changed_.NotifyAll();
    if (to == mesh_.rank()) {
      Announced message{.from = to, .frame = frame, .text = {}};
      const auto receive = std::find_if(
          incoming_.begin(), incoming_.end(),
          [&](const Incoming& each) { return IsFor(each, message); });
      if (receive == incoming_.end()) {
        announced_.push_back(std::move(message));
      } else {
        Incoming taken = std::move(*receive);
        incoming_.erase(receive);
        Match(std::move(taken), std::move(message), completions);
      }
    }
  }
  RunAll(completions);
  return done;
}

async::Future<int> Messages::Receive(MutableBytes data, int from, uint32_t tag,
                                     async::MonotonicTime deadline) {
  Incoming receive{
      .data = data, .from = from, .tag = tag, .deadline = deadline};
  async::Future<int> done = receive.done.future();
  CancelEndsGroup(receive.done);
  Completions completions;
  {
    const async::MutexLock lock(&mutex_);
    if (!failure_.ok()) return async::MakeReadyFuture<int>(failure_);
    const auto message = std::find_if(
        announced_.begin(), announced_.end(),
        [&](const Announced& each) { return IsFor(receive, each); });
    if (message == announced_.end()) {
      incoming_.push_back(std::move(receive));
      changed_.NotifyAll();
    } else {
      Announced taken = std::move(*message);
      announced_.erase(message);
      Match(std::move(receive), std::move(taken), completions);
    }
  }
  RunAll(completions);
  return done;
}

void Messages::OnFrame(int from, const Mesh::Frame& frame, ConstBytes text) {
  Completions completions;
  {
    const async::MutexLock lock(&mutex_);
    if (frame.kind == Mesh::FrameKind::kReceived) {
      const auto sent = outgoing_.find({from, frame.number});
      if (sent != outgoing_.end()) {
        completions.push_back([done = std::move(sent->second.done)]() mutable {
          done.Set(absl::OkStatus());
        });
        outgoing_.erase(sent);
      }
    } else {
      Announced message{
          .from = from,
          .frame = frame,
          .text = std::vector<std::byte>(text.begin(), text.end())};
      const auto receive = std::find_if(
          incoming_.begin(), incoming_.end(),
          [&](const Incoming& each) { return IsFor(each, message); });
      if (receive == incoming_.end()) {
        announced_.push_back(std::move(message));
      } else {
        Incoming taken = std::move(*receive);
        incoming_.erase(receive);
        Match(std::move(taken), std::move(message), completions);
      }
    }
  }
  RunAll(completions);
}

void Messages::Acknowledge(int to, uint64_t number, Completions& completions) {
  if (to != mesh_.rank()) {
    completions.push_back([this, to, number] {
      mesh_.SendFrame(
          to, {.kind = Mesh::FrameKind::kReceived, .number = number}, {});
    });
    return;
  }
  const auto sent = outgoing_.find({to, number});
  if (sent == outgoing_.end()) return;
  completions.push_back([done = std::move(sent->second.done)]() mutable {
    done.Set(absl::OkStatus());
  });
  outgoing_.erase(sent);
}

void Messages::Match(Incoming receive, Announced message,
                     Completions& completions) {
  const int from = message.from;
  const uint64_t bytes = message.frame.bytes;
  const uint64_t number = message.frame.number;
  absl::StatusOr<int> result = from;
  if (bytes != receive.data.size()) {
    result = absl::InvalidArgumentError(
        absl::StrCat("rank ", from, " has sent ", bytes, " bytes, not ",
                     receive.data.size(), "; the message is dropped"));
  } else if (from == mesh_.rank()) {
    const auto sent = outgoing_.find({from, number});
    if (sent != outgoing_.end() && bytes > 0) {
      std::memmove(receive.data.data(), sent->second.data.data(), bytes);
    }
  } else if (bytes <= Mesh::kInlineBytes) {
    std::copy(message.text.begin(), message.text.end(), receive.data.begin());
  } else {
    auto transfer = std::make_unique<Transfer>(
        mesh_, Transfer::Direction::kReceive, from, receive.data,
        Transfer::Use::kMessage, number);
    running_.push_back({.receive = std::move(receive),
                        .from = from,
                        .number = number,
                        .transfer = std::move(transfer)});
    changed_.NotifyAll();
    return;
  }
  Acknowledge(from, number, completions);
  completions.push_back(
      [done = std::move(receive.done), result = std::move(result)]() mutable {
        done.Set(std::move(result));
      });
}

void Messages::Run() {
  while (true) {
    Running running;
    {
      const async::MutexLock lock(&mutex_);
      while (running_.empty()) {
        if (stopping_) return;
        async::MonotonicTime next = async::kNever;
        if (!FindLate(next).ok()) break;
        changed_.WaitUntil(&mutex_, next);
      }
      if (!running_.empty()) {
        running = std::move(running_.front());
        running_.pop_front();
      }
    }
    if (running.transfer != nullptr) {
      Finish(std::move(running));
      continue;
    }
    absl::Status late;
    {
      const async::MutexLock lock(&mutex_);
      async::MonotonicTime next = async::kNever;
      late = FindLate(next);
    }
    if (!late.ok()) (void)mesh_.Fail(mesh_.NameSilentRanks(late));
  }
}

absl::Status Messages::FindLate(async::MonotonicTime& next) {
  if (!failure_.ok()) return absl::OkStatus();
  const async::MonotonicTime now = std::chrono::steady_clock::now();
  for (const auto& [key, send] : outgoing_) {
    if (send.deadline <= now) {
      return absl::DeadlineExceededError(
          absl::StrCat("rank ", key.first, " has not received a message of ",
                       send.data.size(), " bytes in time"));
    }
    next = std::min(next, send.deadline);
  }
  for (const Incoming& receive : incoming_) {
    if (receive.deadline <= now) {
      return absl::DeadlineExceededError(
          receive.from == Backend::kAnyRank
              ? absl::StrCat("no rank has sent a message of tag ", receive.tag,
                             " in time")
              : absl::StrCat("rank ", receive.from,
                             " has sent no message of tag ", receive.tag,
                             " in time"));
    }
    next = std::min(next, receive.deadline);
  }
  return absl::OkStatus();
}

void Messages::Finish(Running running) {
  absl::Status status = running.transfer->Wait(running.receive.deadline);
  if (absl::IsDeadlineExceeded(status) && mesh_.failure().ok()) {
    status = mesh_.Fail(mesh_.NameSilentRanks(absl::DeadlineExceededError(
        absl::StrCat("rank ", running.from,
                     " has not sent the rest of a message in time"))));
  }
  // The memory belongs to the caller again before the future completes.
  running.transfer.reset();
  if (!status.ok()) {
    running.receive.done.Set(std::move(status));
    return;
  }
  mesh_.SendFrame(
      running.from,
      {.kind = Mesh::FrameKind::kReceived, .number = running.number}, {});
  running.receive.done.Set(running.from);
}

void Messages::OnFailure(const absl::Status& status) { EndAll(status); }

void Messages::EndAll(const absl::Status& status) {
  std::map<OutgoingKey, Outgoing> outgoing;
  std::list<Incoming> incoming;
  std::deque<Running> running;
  {
    const async::MutexLock lock(&mutex_);
    if (failure_.ok()) failure_ = status;
    outgoing.swap(outgoing_);
    incoming.swap(incoming_);
    running.swap(running_);
    announced_.clear();
    changed_.NotifyAll();
  }
  for (auto& [key, send] : outgoing) {
    send.transfer.reset();
    send.done.Set(status);
  }
  for (Incoming& receive : incoming) receive.done.Set(status);
  for (Running& each : running) {
    each.transfer.reset();
    each.receive.done.Set(status);
  }
}

}  // namespace hawser::collectives
