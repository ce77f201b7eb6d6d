#include "rpc/link/link_client.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "async/blocking_region.h"
#include "rpc/link/copy_time.h"

namespace hawser::rpc {

bool LinkClient::Call(CallId id, std::string_view path, Payload& request,
                      async::MonotonicTime deadline, Done& done) {
  const std::shared_ptr<MessageLink> link = link_.lock();
  if (link == nullptr) return false;
  {
    async::MutexLock lock(&mutex_);
    if (ended_) return false;
    calls_.emplace(id, Waiting{std::move(done), deadline, request.size()});
  }
  link->Send({.kind = LinkMessage::Kind::kRequest,
              .call = id,
              .path = std::string(path),
              .deadline = deadline,
              .payload = std::move(request)});
  if (deadline == async::kNever) return true;
  {
    // Released only now: the peer must not receive the cancellation before the
    // call.
    async::MutexLock lock(&mutex_);
    if (calls_.contains(id)) deadlines_.emplace(deadline, id);
  }
  link->WakeBy(deadline);
  return true;
}

Connection::Done LinkClient::Take(CallId id) {
  async::MutexLock lock(&mutex_);
  auto it = calls_.find(id);
  if (it == calls_.end()) return nullptr;
  Done done = std::move(it->second.done);
  if (it->second.awaited_since.has_value()) {
    wait_time_.Record(std::chrono::steady_clock::now() -
                      *it->second.awaited_since);
  }
  deadlines_.erase({it->second.deadline, id});
  calls_.erase(it);
  return done;
}

Connection::Done LinkClient::Abandon(CallId id) {
  Done done = Take(id);
  if (done == nullptr) return nullptr;
  if (const std::shared_ptr<MessageLink> link = link_.lock()) {
    link->Forget(id);
    link->Send({.kind = LinkMessage::Kind::kCancel, .call = id});
  }
  return done;
}

void LinkClient::Cancel(CallId id) {
  Done done = Abandon(id);
  if (done == nullptr) return;
  // `done` must not run in the cancelling thread.
  post_([done = std::move(done)]() mutable {
    std::move(done)(absl::CancelledError("the call was cancelled"));
  });
}

void LinkClient::Await(CallId id, absl::FunctionRef<bool()> stop) {
  const std::shared_ptr<MessageLink> link = link_.lock();
  if (link == nullptr) return;
  absl::Duration spin = spin_;
  {
    async::MutexLock lock(&mutex_);
    auto it = calls_.find(id);
    if (it == calls_.end()) return;
    it->second.awaited_since = std::chrono::steady_clock::now();
    // Otherwise polling is disabled.
    if (spin_ > absl::ZeroDuration()) spin += CopyTime(it->second.bytes);
  }
  // A thread that is replaced when it blocks has others wait for it.
  const bool replaced = async::BlockingObserver::OfThisThread() != nullptr;
  if (const auto expected = wait_time_.expected();
      expected.has_value() && !replaced && spin_ > absl::ZeroDuration()) {
    const absl::Duration wait = 2 * absl::FromChrono(*expected);
    if (wait <= link->max_poll()) spin = std::max(spin, wait);
  }
  link->PollFor(id, spin, stop);
}

void LinkClient::Close(const absl::Status& status) {
  if (const std::shared_ptr<MessageLink> link = link_.lock()) {
    link->Close(status);
  }
}

bool LinkClient::ended() {
  async::MutexLock lock(&mutex_);
  return ended_;
}

LinkWork LinkClient::OnMessage(LinkMessage message) {
  // Drop replies that no call waits for; this also releases them at the peer.
  if (message.kind != LinkMessage::Kind::kReply) return {};
  Done done = Take(message.call);
  if (done == nullptr) return {};
  const std::shared_ptr<MessageLink> link = link_.lock();
  if (link != nullptr) link->Forget(message.call);
  if (!message.error.ok()) {
    return {message.call, [done = std::move(done),
                           error = std::move(message.error)]() mutable {
              std::move(done)(std::move(error));
            }};
  }
  return {message.call, [done = std::move(done),
                         payload = std::move(message.payload)]() mutable {
            std::move(done)(std::move(payload));
          }};
}

bool LinkClient::Expects(uint64_t call) {
  async::MutexLock lock(&mutex_);
  return calls_.contains(call);
}

void LinkClient::OnEnd(const absl::Status& status) {
  absl::flat_hash_map<CallId, Waiting> calls;
  {
    async::MutexLock lock(&mutex_);
    ended_ = true;
    calls.swap(calls_);
    deadlines_.clear();
  }
  // Separate closures, because one may block and the others must not wait for
  // it.
  for (auto& [id, call] : calls) {
    post_([done = std::move(call.done), status]() mutable {
      std::move(done)(status);
    });
  }
}

async::MonotonicTime LinkClient::OnTime(async::MonotonicTime now) {
  std::vector<CallId> due;
  async::MonotonicTime next = async::kNever;
  {
    async::MutexLock lock(&mutex_);
    for (const auto& [deadline, id] : deadlines_) {
      if (deadline > now) {
        next = deadline;
        break;
      }
      due.push_back(id);
    }
  }
  for (const CallId id : due) {
    if (Done done = Abandon(id); done != nullptr) {
      post_([done = std::move(done)]() mutable {
        std::move(done)(
            absl::DeadlineExceededError("no reply by the deadline"));
      });
    }
  }
  return next;
}

}  // namespace hawser::rpc
