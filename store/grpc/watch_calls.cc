#include "store/grpc/watch_calls.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/mutex.h"
#include "net/grpc/status.h"
#include "store/grpc/call.h"

namespace hawser::store::internal {
namespace {

constexpr absl::Duration kFirstPause = absl::Milliseconds(10);
constexpr absl::Duration kMaxPause = absl::Seconds(1);

}  // namespace

// State that the calls share and hold while an attempt runs.
class WatchCalls::State {
 public:
  State(std::string description, Attempt attempt, async::Clock* clock)
      : description_(std::move(description)),
        attempt_(std::move(attempt)),
        clock_(*clock) {}

  const std::string& description() const { return description_; }
  const Attempt& attempt() const { return attempt_; }
  async::Clock& clock() { return clock_; }

  // Returns false once Stop was called.
  bool Add(const std::shared_ptr<Call>& call) {
    async::MutexLock lock(&mutex_);
    if (stopped_) return false;
    calls_.insert(call);
    return true;
  }
  void Remove(const std::shared_ptr<Call>& call) {
    async::MutexLock lock(&mutex_);
    calls_.erase(call);
  }

  // Bracket an attempt. Begin returns false once Stop was called.
  bool Begin() {
    async::MutexLock lock(&mutex_);
    if (stopped_) return false;
    ++running_;
    return true;
  }
  void End() {
    async::MutexLock lock(&mutex_);
    if (--running_ == 0) idle_.NotifyAll();
  }

  void Stop();

 private:
  const std::string description_;
  const Attempt attempt_;
  // Times the pauses between attempts; used by running attempts only.
  async::Clock& clock_;

  async::Mutex mutex_;
  async::CondVar idle_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  // Calls without a result.
  absl::flat_hash_set<std::shared_ptr<Call>> calls_ ABSL_GUARDED_BY(mutex_);
  int running_ ABSL_GUARDED_BY(mutex_) = 0;
};

class WatchCalls::Call : public std::enable_shared_from_this<Call> {
 public:
  Call(std::weak_ptr<State> state, v1::StoreAwaitChangeRequest request)
      : state_(std::move(state)), request_(std::move(request)) {}

  async::Future<std::vector<std::string>> Start() {
    async::Future<std::vector<std::string>> future = promise_.future();
    promise_.OnCancel([weak = weak_from_this()] {
      if (const auto call = weak.lock(); call != nullptr) call->Cancel();
    });
    const std::shared_ptr<State> state = state_.lock();
    if (state == nullptr || !state->Add(shared_from_this())) {
      promise_.Set(absl::CancelledError("the store is closed"));
    } else {
      Try();
    }
    return future;
  }

  // Ends the running attempt, and makes no other.
  void EndAttempts() {
    async::MutexLock lock(&mutex_);
    cancelled_ = true;
    if (context_.has_value()) context_->TryCancel();
  }

  // Sets the result, unless the caller cancelled the call.
  void Finish(absl::StatusOr<std::vector<std::string>> result) {
    Leave();
    promise_.Set(std::move(result));
  }

 private:
  void Cancel() {
    EndAttempts();
    Leave();
  }

  void Leave() {
    const std::shared_ptr<State> state = state_.lock();
    if (state != nullptr) state->Remove(shared_from_this());
  }

  void Try() {
    const std::shared_ptr<State> state = state_.lock();
    if (state == nullptr || !state->Begin()) return;
    grpc::ClientContext* context = nullptr;
    {
      async::MutexLock lock(&mutex_);
      if (!cancelled_) {
        context = &context_.emplace();
        SetDeadline(async::kNever, context);
      }
    }
    if (context == nullptr) {
      state->End();
      return;
    }
    reply_.Clear();
    state->attempt()(
        context, &request_, &reply_,
        [self = shared_from_this(), state](const grpc::Status& status) {
          self->OnReply(*state, status);
          state->End();
        });
  }

  void OnReply(State& state, const grpc::Status& status) {
    {
      async::MutexLock lock(&mutex_);
      context_.reset();
      if (cancelled_) return;
    }
    switch (status.error_code()) {
      case grpc::StatusCode::OK:
        Finish(std::vector<std::string>(reply_.values().begin(),
                                        reply_.values().end()));
        return;
      case grpc::StatusCode::DEADLINE_EXCEEDED:
        pause_ = kFirstPause;
        [[fallthrough]];
      case grpc::StatusCode::UNAVAILABLE:
      case grpc::StatusCode::CANCELLED:
        // The connection was lost, or the server is shutting down or hung.
        state.clock().CallAfter(
            std::exchange(pause_, std::min(2 * pause_, kMaxPause)),
            [self = shared_from_this()] { self->Try(); });
        return;
      default:
        Finish(absl::Status(
            net::FromGrpcStatus(status).code(),
            absl::StrCat(state.description(), ": ", status.error_message())));
    }
  }

  const std::weak_ptr<State> state_;
  const v1::StoreAwaitChangeRequest request_;
  async::Promise<std::vector<std::string>> promise_;
  // Used by one attempt at a time.
  v1::StoreAwaitChangeReply reply_;
  absl::Duration pause_ = kFirstPause;

  async::Mutex mutex_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  // Of the running attempt.
  std::optional<grpc::ClientContext> context_ ABSL_GUARDED_BY(mutex_);
};

void WatchCalls::State::Stop() {
  absl::flat_hash_set<std::shared_ptr<Call>> calls;
  {
    async::MutexLock lock(&mutex_);
    stopped_ = true;
    calls = std::exchange(calls_, {});
  }
  for (const std::shared_ptr<Call>& call : calls) call->EndAttempts();
  {
    async::MutexLock lock(&mutex_);
    while (running_ > 0) idle_.Wait(&mutex_);
  }
  for (const std::shared_ptr<Call>& call : calls) {
    call->Finish(absl::CancelledError("the store is closed"));
  }
}

WatchCalls::WatchCalls(std::string description, Attempt attempt)
    : state_(std::make_shared<State>(std::move(description), std::move(attempt),
                                     &clock_)) {}

WatchCalls::~WatchCalls() { state_->Stop(); }

async::Future<std::vector<std::string>> WatchCalls::Start(
    v1::StoreAwaitChangeRequest request) {
  return std::make_shared<Call>(state_, std::move(request))->Start();
}

}  // namespace hawser::store::internal
