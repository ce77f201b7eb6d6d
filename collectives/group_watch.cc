#include "collectives/group_watch.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/future.h"
#include "async/mutex.h"
#include "async/status_macros.h"

namespace hawser::collectives {
namespace {

// For the replies of other ranks.
constexpr absl::Duration kPatience = absl::Seconds(1);

async::MonotonicTime SendDeadline() {
  return async::AddDelay(std::chrono::steady_clock::now(), kPatience);
}

enum class Kind : uint64_t { kQuestion, kReply, kGoodbye };

struct Message {
  Kind kind = Kind::kGoodbye;
  int64_t num_begun = 0;
};

}  // namespace

struct GroupWatch::State : std::enable_shared_from_this<GroupWatch::State> {
  struct Peer {
    bool has_said_goodbye = false;
    // No receive waits: the rank has left, or the group has failed.
    bool ended = false;
    std::optional<int64_t> num_begun = std::nullopt;
  };

  State(Backend& backend, int the_rank, int size, Events the_events)
      : control(backend),
        rank(the_rank),
        events(std::move(the_events)),
        peers(static_cast<size_t>(size)) {}

  void Receive(int from);
  void OnReceived(int from, const absl::Status& status, const Message& message);
  // May run callbacks of futures: with no lock held.
  void Send(int to, const Message& message);
  void SayGoodbye(int to);

  Backend& control;
  const int rank;
  const Events events;

  async::Mutex mutex;
  async::CondVar changed;
  bool stopped ABSL_GUARDED_BY(mutex) = false;
  // Callbacks, and messages on their way.
  int num_running ABSL_GUARDED_BY(mutex) = 0;
  int num_sending ABSL_GUARDED_BY(mutex) = 0;
  std::vector<Peer> peers ABSL_GUARDED_BY(mutex);
  // Of the group.
  absl::Status failure ABSL_GUARDED_BY(mutex);
};

void GroupWatch::State::Receive(int from) {
  auto message = std::make_shared<Message>();
  control
      .Receive(std::as_writable_bytes(std::span(message.get(), 1)), from, kTag,
               async::kNever)
      .OnReady([state = shared_from_this(), from,
                message](const absl::StatusOr<int>& result) {
        state->OnReceived(from, result.status(), *message);
      });
}

void GroupWatch::State::OnReceived(int from, const absl::Status& status,
                                   const Message& message) {
  {
    const async::MutexLock lock(&mutex);
    if (stopped) return;
    ++num_running;
  }
  const bool ends = !status.ok() || message.kind == Kind::kGoodbye;
  if (!status.ok()) {
    events.on_failure(status);
  } else if (message.kind == Kind::kGoodbye) {
    SayGoodbye(from);
    events.on_left(from, message.num_begun);
  } else if (message.kind == Kind::kQuestion) {
    Send(from, {.kind = Kind::kReply, .num_begun = events.num_begun()});
  }
  if (!ends) Receive(from);
  const async::MutexLock lock(&mutex);
  Peer& peer = peers[static_cast<size_t>(from)];
  peer.ended = peer.ended || ends;
  if (failure.ok()) failure = status;
  if (status.ok() && message.kind != Kind::kQuestion) {
    peer.num_begun = message.num_begun;
  }
  --num_running;
  changed.NotifyAll();
}

void GroupWatch::State::Send(int to, const Message& message) {
  {
    const async::MutexLock lock(&mutex);
    ++num_sending;
  }
  auto data = std::make_shared<const Message>(message);
  control
      .Send(std::as_bytes(std::span(data.get(), 1)), to, kTag, SendDeadline())
      .OnReady([state = shared_from_this(), data](const absl::Status&) {
        const async::MutexLock lock(&state->mutex);
        --state->num_sending;
        state->changed.NotifyAll();
      });
}

void GroupWatch::State::SayGoodbye(int to) {
  {
    const async::MutexLock lock(&mutex);
    Peer& peer = peers[static_cast<size_t>(to)];
    if (std::exchange(peer.has_said_goodbye, true)) return;
  }
  Send(to, {.kind = Kind::kGoodbye, .num_begun = events.num_begun()});
}

GroupWatch::GroupWatch(Backend& control, int rank, int size, Events events)
    : state_(std::make_shared<State>(control, rank, size, std::move(events))) {
  for (int other = 0; other < size; ++other) {
    if (other != rank) state_->Receive(other);
  }
}

GroupWatch::~GroupWatch() {
  const async::MonotonicTime deadline = SendDeadline();
  int size = 0;
  {
    const async::MutexLock lock(&state_->mutex);
    size = static_cast<int>(state_->peers.size());
  }
  for (int other = 0; other < size; ++other) {
    if (other != state_->rank) state_->SayGoodbye(other);
  }
  const async::MutexLock lock(&state_->mutex);
  const auto is_done = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mutex) {
    if (state_->num_sending > 0) return false;
    for (int other = 0; other < size; ++other) {
      if (other == state_->rank) continue;
      if (!state_->peers[static_cast<size_t>(other)].ended) return false;
    }
    return true;
  };
  bool in_time = true;
  while (in_time && !is_done()) {
    in_time = state_->changed.WaitUntil(&state_->mutex, deadline);
  }
  state_->stopped = true;
  while (state_->num_running > 0) state_->changed.Wait(&state_->mutex);
}

absl::Status GroupWatch::ExplainTimeout(int64_t num_begun,
                                        const absl::Status& status) {
  std::vector<int> asked;
  {
    const async::MutexLock lock(&state_->mutex);
    for (size_t other = 0; other < state_->peers.size(); ++other) {
      State::Peer& peer = state_->peers[other];
      if (static_cast<int>(other) == state_->rank || peer.ended) continue;
      peer.num_begun = std::nullopt;
      asked.push_back(static_cast<int>(other));
    }
  }
  const async::MonotonicTime deadline = SendDeadline();
  for (const int other : asked) state_->Send(other, {.kind = Kind::kQuestion});
  const async::MutexLock lock(&state_->mutex);
  bool in_time = true;
  const auto replied =
      [&](int other) ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mutex) {
        const State::Peer& peer = state_->peers[static_cast<size_t>(other)];
        return peer.ended || peer.num_begun.has_value();
      };
  while (in_time && !std::all_of(asked.begin(), asked.end(), replied)) {
    in_time = state_->changed.WaitUntil(&state_->mutex, deadline);
  }
  RETURN_IF_ERROR(state_->failure);
  std::vector<int> late;
  for (size_t other = 0; other < state_->peers.size(); ++other) {
    if (static_cast<int>(other) == state_->rank) continue;
    if (state_->peers[other].num_begun.value_or(-1) < num_begun) {
      late.push_back(static_cast<int>(other));
    }
  }
  if (late.empty()) {
    return absl::Status(status.code(),
                        absl::StrCat(std::string(status.message()),
                                     ", though all ranks have called it"));
  }
  return absl::Status(status.code(),
                      absl::StrCat(late.size() == 1 ? "rank " : "ranks ",
                                   absl::StrJoin(late, ", "),
                                   late.size() == 1 ? " has" : " have",
                                   " not taken part in time"));
}

}  // namespace hawser::collectives
