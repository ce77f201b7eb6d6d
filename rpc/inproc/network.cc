#include "rpc/inproc/network.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/check.h"
#include "rpc/errors/not_sent.h"
#include "rpc/errors/status_details.h"
#include "rpc/inproc/network_state.h"
#include "rpc/inproc/transport.h"

namespace hawser::rpc {

using internal::InprocCall;
using internal::InprocNode;

namespace {

absl::Status Unreachable(std::string_view address) {
  return absl::UnavailableError(
      absl::StrCat("no worker serves at ",
                   absl::string_view(address.data(), address.size())));
}

// Returns `reply` as it would arrive over a network.
absl::StatusOr<Payload> AsReceived(absl::StatusOr<Payload> reply) {
  if (reply.ok()) return reply;
  return FromStatusDetails(ToStatusDetails(reply.status()));
}

// An arrived request. Each duplicate of a request has its own.
class InprocIncomingCall final : public IncomingCall {
 public:
  InprocIncomingCall(std::shared_ptr<InprocCall> call, Payload request,
                     async::MonotonicTime deadline)
      : call_(std::move(call)),
        request_(std::move(request)),
        deadline_(deadline) {}

  ~InprocIncomingCall() override {
    if (answered_) return;
    Reply(absl::UnavailableError("the worker dropped the call"));
  }

  Payload TakeRequest() override { return std::move(request_); }
  async::MonotonicTime deadline() const override { return deadline_; }
  const std::shared_ptr<Cancellation>& cancellation() const override {
    return call_->cancellation();
  }
  // Peers in the process are not authenticated.
  absl::StatusOr<std::optional<net::Identity>> caller() const override {
    return std::nullopt;
  }

  void Reply(absl::StatusOr<Payload> reply) override {
    HAWSER_CHECK(!std::exchange(answered_, true)) << "replied twice";
    call_->network().SendReply(call_, AsReceived(std::move(reply)));
  }
  void Discard() override {
    HAWSER_CHECK(!std::exchange(answered_, true)) << "replied twice";
  }

 private:
  const std::shared_ptr<InprocCall> call_;
  Payload request_;
  const async::MonotonicTime deadline_;
  bool answered_ = false;
};

}  // namespace

InprocNetwork::InprocNetwork(InprocNetworkOptions options)
    : state_(std::make_shared<State>(options)) {}
InprocNetwork::~InprocNetwork() = default;

std::unique_ptr<Transport> InprocNetwork::NewTransport(async::Clock* clock) {
  return std::make_unique<InprocTransport>(
      state_, clock != nullptr ? *clock : state_->clock());
}
void InprocNetwork::SetFaults(const InprocFaults& faults) {
  state_->SetFaults(faults);
}
void InprocNetwork::SetMethodFaults(std::string_view path,
                                    const InprocFaults& faults) {
  state_->SetMethodFaults(path, faults);
}
void InprocNetwork::Crash(std::string_view address) { state_->Crash(address); }
void InprocNetwork::Break(std::string_view a, std::string_view b) {
  state_->Break(a, b);
}
void InprocNetwork::Block(std::string_view from, std::string_view to,
                          bool blocked) {
  state_->Block(from, to, blocked);
}
void InprocNetwork::Partition(std::string_view a, std::string_view b,
                              bool partitioned) {
  state_->Block(a, b, partitioned);
  state_->Block(b, a, partitioned);
}

std::shared_ptr<InprocNode> InprocNetwork::State::AddNode(async::Clock& clock) {
  async::MutexLock lock(&mutex_);
  auto node = std::make_shared<InprocNode>(
      absl::StrCat("inproc:", ++last_node_), clock);
  nodes_.emplace(node->address, node);
  return node;
}

void InprocNetwork::State::RemoveNode(const InprocNode& node) {
  async::MutexLock lock(&mutex_);
  nodes_.erase(node.address);
}

const InprocFaults& InprocNetwork::State::FaultsOf(
    std::string_view path) const {
  auto it = method_faults_.find(path);
  return it == method_faults_.end() ? faults_ : it->second;
}

std::vector<absl::Duration> InprocNetwork::State::DrawCopies(
    double drop, double duplicate, const InprocFaults& faults) {
  std::vector<absl::Duration> delays;
  if (drop > 0 && random_.Uniform() < drop) return delays;
  const int copies = duplicate > 0 && random_.Uniform() < duplicate ? 2 : 1;
  for (int i = 0; i < copies; ++i) {
    const absl::Duration range = faults.max_delay - faults.min_delay;
    delays.push_back(range > absl::ZeroDuration()
                         ? faults.min_delay + range * random_.Uniform()
                         : faults.min_delay);
  }
  return delays;
}

void InprocNetwork::State::RunAfter(absl::Duration delay,
                                    absl::AnyInvocable<void() &&> action) {
  if (delay <= absl::ZeroDuration()) {
    executor_.Post(std::move(action));
    return;
  }
  clock_.CallAfter(delay, [this, self = shared_from_this(),
                           action = std::move(action)]() mutable {
    executor_.Post(std::move(action));
  });
}

absl::Status InprocNetwork::State::CheckPath(const std::string& from,
                                             const std::string& to) {
  async::MutexLock lock(&mutex_);
  const bool open = nodes_.contains(to) && !crashed_.contains(from) &&
                    !crashed_.contains(to) && !blocked_.contains({from, to}) &&
                    !blocked_.contains({to, from});
  return open ? absl::OkStatus() : Unreachable(to);
}

void InprocNetwork::State::Enter(const std::shared_ptr<InprocCall>& call) {
  async::MutexLock lock(&mutex_);
  call->set_number(++last_call_);
  calls_.emplace(call->number(), call);
}

void InprocNetwork::State::Send(std::shared_ptr<InprocCall> call,
                                Payload request) {
  std::vector<absl::Duration> delays;
  bool reachable = true;
  {
    async::MutexLock lock(&mutex_);
    reachable = nodes_.contains(call->destination()) &&
                !crashed_.contains(call->source()) &&
                !crashed_.contains(call->destination());
    if (reachable &&
        !blocked_.contains({call->source(), call->destination()})) {
      const InprocFaults& faults = FaultsOf(call->path());
      delays =
          DrawCopies(faults.drop_request, faults.duplicate_request, faults);
    }
  }
  if (!call->Begin()) return;
  if (!reachable) {
    call->Complete(MarkNotSent(Unreachable(call->destination())));
    return;
  }
  for (absl::Duration delay : delays) {
    RunAfter(delay, [self = shared_from_this(), call, request]() mutable {
      self->Deliver(call, std::move(request));
    });
  }
}

void InprocNetwork::State::Deliver(const std::shared_ptr<InprocCall>& call,
                                   Payload request) {
  std::shared_ptr<InprocNode> node;
  {
    async::MutexLock lock(&mutex_);
    auto it = nodes_.find(call->destination());
    if (it != nodes_.end() && !crashed_.contains(call->destination())) {
      node = it->second;
    }
  }
  if (node == nullptr) {
    call->Complete(Unreachable(call->destination()));
    return;
  }
  Gate::Entry entry(&node->gate);
  if (!entry) {
    call->Complete(Unreachable(call->destination()));
    return;
  }
  std::function<void(std::unique_ptr<IncomingCall>)> handler;
  {
    async::MutexLock lock(&node->mutex);
    auto it = node->methods.find(call->path());
    if (it != node->methods.end()) handler = it->second.handler;
  }
  auto incoming = std::make_unique<InprocIncomingCall>(
      call, std::move(request), call->DeadlineOn(node->clock));
  if (handler == nullptr) {
    incoming->Reply(absl::UnimplementedError(
        absl::StrCat("no method ", call->path(), " is served here")));
    return;
  }
  handler(std::move(incoming));
}

void InprocNetwork::State::SendReply(const std::shared_ptr<InprocCall>& call,
                                     const absl::StatusOr<Payload>& reply) {
  std::vector<absl::Duration> delays;
  {
    async::MutexLock lock(&mutex_);
    if (blocked_.contains({call->destination(), call->source()}) ||
        crashed_.contains(call->destination())) {
      return;
    }
    const InprocFaults& faults = FaultsOf(call->path());
    delays = DrawCopies(faults.drop_reply, faults.duplicate_reply, faults);
  }
  for (absl::Duration delay : delays) {
    if (delay <= absl::ZeroDuration()) {
      call->Complete(reply);
    } else {
      RunAfter(delay, [call, reply] { call->Complete(reply); });
    }
  }
}

void InprocNetwork::State::Forget(const std::shared_ptr<InprocCall>& call) {
  async::MutexLock lock(&mutex_);
  calls_.erase(call->number());
}

void InprocNetwork::State::SetFaults(const InprocFaults& faults) {
  async::MutexLock lock(&mutex_);
  faults_ = faults;
}

void InprocNetwork::State::SetMethodFaults(std::string_view path,
                                           const InprocFaults& faults) {
  async::MutexLock lock(&mutex_);
  method_faults_.insert_or_assign(std::string(path), faults);
}

std::vector<std::shared_ptr<InprocCall>> InprocNetwork::State::CallsBetween(
    std::string_view a, std::string_view b) {
  std::vector<std::shared_ptr<InprocCall>> calls;
  async::MutexLock lock(&mutex_);
  for (const auto& [number, call] : calls_) {
    if ((call->source() == a && call->destination() == b) ||
        (call->source() == b && call->destination() == a)) {
      calls.push_back(call);
    }
  }
  return calls;
}

void InprocNetwork::State::Crash(std::string_view address) {
  std::vector<std::shared_ptr<InprocCall>> calls;
  {
    async::MutexLock lock(&mutex_);
    crashed_.insert(std::string(address));
    for (const auto& [number, call] : calls_) {
      if (call->source() == address || call->destination() == address) {
        calls.push_back(call);
      }
    }
  }
  for (const auto& call : calls) {
    call->Complete(absl::UnavailableError(
        absl::StrCat("the connection to ", call->destination(), " broke")));
  }
}

void InprocNetwork::State::Break(std::string_view a, std::string_view b) {
  for (const auto& call : CallsBetween(a, b)) {
    call->Complete(absl::UnavailableError(
        absl::StrCat("the connection to ", call->destination(), " broke")));
  }
}

void InprocNetwork::State::Block(std::string_view from, std::string_view to,
                                 bool blocked) {
  std::pair<std::string, std::string> way(from, to);
  async::MutexLock lock(&mutex_);
  if (blocked) {
    blocked_.insert(std::move(way));
  } else {
    blocked_.erase(way);
  }
}

void InprocNetwork::State::EndCallsOf(const InprocNode& node) {
  std::vector<std::shared_ptr<InprocCall>> own;
  std::vector<std::shared_ptr<InprocCall>> incoming;
  {
    async::MutexLock lock(&mutex_);
    for (const auto& [number, call] : calls_) {
      if (call->source() == node.address) {
        own.push_back(call);
      } else if (call->destination() == node.address) {
        incoming.push_back(call);
      }
    }
  }
  for (const auto& call : own) {
    call->CompleteNow(absl::CancelledError("the transport was shut down"));
  }
  for (const auto& call : incoming) {
    call->Complete(absl::UnavailableError(
        absl::StrCat("the connection to ", call->destination(), " broke")));
  }
}

}  // namespace hawser::rpc

namespace hawser::rpc::internal {

async::MonotonicTime InprocCall::DeadlineOn(const async::Clock& clock) const {
  return async::AddDelay(clock.Now(),
                         async::TimeBetween(source_->clock.Now(), deadline_));
}

bool InprocCall::Begin() {
  async::TimerId timer{};
  if (deadline_ != async::kNever) {
    timer = source_->clock.CallAt(deadline_, [call = shared_from_this()] {
      call->Complete(absl::DeadlineExceededError("no reply in time"));
    });
  }
  {
    async::MutexLock lock(&mutex_);
    if (!settled_) {
      timer_ = timer;
      has_timer_ = deadline_ != async::kNever;
      return true;
    }
  }
  if (deadline_ != async::kNever) source_->clock.Cancel(timer);
  return false;
}

bool InprocCall::Settle(absl::StatusOr<Payload> outcome) {
  async::TimerId timer{};
  {
    async::MutexLock lock(&mutex_);
    if (std::exchange(settled_, true)) return false;
    outcome_ = std::move(outcome);
    if (!std::exchange(has_timer_, false)) return true;
    timer = timer_;
  }
  source_->clock.Cancel(timer);
  return true;
}

void InprocCall::Complete(absl::StatusOr<Payload> outcome) {
  const bool failed = !outcome.ok();
  if (!Settle(std::move(outcome))) return;
  // Notifies the callee, if it still runs, that the call has ended.
  if (failed) cancellation_->Cancel();
  network_->executor().Post([call = shared_from_this()] {
    // If closed, Shutdown has run the callback.
    Gate::Entry entry(&call->source_->gate);
    if (entry) call->RunDone();
  });
}

void InprocCall::CompleteNow(absl::Status status) {
  if (Settle(std::move(status))) cancellation_->Cancel();
  RunDone();
}

void InprocCall::RunDone() {
  Connection::Done done;
  absl::StatusOr<Payload> outcome;
  {
    async::MutexLock lock(&mutex_);
    if (done_ == nullptr) return;
    done = std::exchange(done_, nullptr);
    outcome = std::move(outcome_);
  }
  network_->Forget(shared_from_this());
  std::move(done)(std::move(outcome));
}

}  // namespace hawser::rpc::internal
