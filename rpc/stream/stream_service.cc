#include "rpc/stream/stream_service.h"

#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/status_macros.h"
#include "async/task_local.h"
#include "net/wire_text.h"
#include "rpc/agent/current_call.h"
#include "rpc/errors/error_detail.h"
#include "rpc/functions/function_registry.h"
#include "rpc/stream/stream_methods.h"
#include "rpc/wire/decoder.h"

namespace hawser::rpc {
namespace {

constexpr uint32_t kMaxWindow = 64;

absl::Status DeadlinePassed() {
  return absl::DeadlineExceededError("the deadline of the stream has passed");
}

void SetEnd(const WorkerInfo& self, const absl::Status& status,
            v1::StreamEnd* end) {
  end->set_code(static_cast<int>(status.code()));
  if (status.ok()) return;
  const std::optional<ErrorDetail> known = GetErrorDetail(status);
  const ErrorDetail detail = known.value_or(
      ErrorDetail{.worker = self.name, .incarnation = self.incarnation});
  end->set_message(net::ToErrorText(
      known.has_value()
          ? std::string(status.message())
          : absl::StrCat("worker '", self.name, "': ", status.message())));
  end->mutable_detail()->set_worker(detail.worker);
  end->mutable_detail()->set_incarnation(ToNumber(detail.incarnation));
  end->mutable_detail()->set_maybe_applied(detail.maybe_applied);
}

template <class Reply>
async::Future<Message<Reply>> Answer(absl::Status status) {
  if (!status.ok()) {
    return async::MakeReadyFuture<Message<Reply>>(std::move(status));
  }
  return async::MakeReadyFuture<Message<Reply>>(Message<Reply>());
}

}  // namespace

StreamService::StreamService(const StreamLimits& limits)
    : limits_(limits),
      quota_({.items = "streams",
              .advice = "close some",
              .items_per_peer = {
                  .max = limits.max_streams_per_reader,
                  .option = "StreamLimits::max_streams_per_reader"}}) {}

absl::Status StreamService::Start(ServiceHost& host) {
  host_ = &host;
  if (limits_.max_streams_per_reader == 0) {
    return absl::InvalidArgumentError(
        "StreamLimits::max_streams_per_reader must be positive");
  }
  if (limits_.non_member_limit <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        "StreamLimits::non_member_limit must be positive");
  }
  // Observers may use streams of functions that they may call.
  const MethodOptions options = {.for_observers = true};
  RETURN_IF_ERROR((host.RegisterMethod(
      kStreamOpenMethod,
      [this](const MethodCall& call, Message<v1::StreamOpenRequest> request) {
        return Answer<v1::StreamOpenReply>(Open(call, std::move(request)));
      },
      options)));
  RETURN_IF_ERROR((host.RegisterMethod(
      kStreamNextMethod,
      [this](const MethodCall& call,
             const Message<v1::StreamNextRequest>& request) {
        return Next(call, request.body);
      },
      options)));
  return host.RegisterMethod(
      kStreamCloseMethod,
      [this](const MethodCall& call,
             const Message<v1::StreamCloseRequest>& request) {
        Close(KeyOf(call, request.body.stream()));
        return Answer<v1::StreamCloseReply>(absl::OkStatus());
      },
      options);
}

// 1. Finds the function and creates the sink, under the reader's number.
// 2. Decodes the arguments and runs the function on its executor, with the sink
//    as task-local. Its result, or an error in the arguments, ends the stream.
absl::Status StreamService::Open(const MethodCall& call,
                                 Message<v1::StreamOpenRequest> request) {
  const v1::StreamOpenRequest& body = request.body;
  if (!absl::StartsWith(body.signature(), "stream ")) {
    return absl::InvalidArgumentError(
        "the function to stream is declared as a Function");
  }
  ASSIGN_OR_RETURN(
      const RegisteredFunction* const function,
      host_->FindFunction(call, body.function(), body.signature()));
  if (body.window() < 1 || body.window() > kMaxWindow) {
    return absl::InvalidArgumentError(
        absl::StrCat("the window of a stream is ", body.window(),
                     "; it must be 1 to ", kMaxWindow));
  }
  auto sink =
      std::make_shared<StreamSink>(host_->agent(), call.peer, body.window());
  const Key key = KeyOf(call, body.stream());
  RETURN_IF_ERROR(Insert(key, sink, call.deadline));
  FollowOpen(key, sink, call);

  const CurrentCall::Scope current(CurrentCall(
      host_->agent(), call.peer, call.deadline, sink->cancellation()));
  const async::TaskLocal<std::shared_ptr<StreamSink>>::Scope stream(
      internal::current_stream, sink);
  const std::string values = body.arguments().SerializeAsString();
  Decoder arguments(host_->agent(), &sink->reader(), values,
                    std::move(request.tensors));
  host_->Invoke(*function, arguments)
      .OnReady([sink](const absl::StatusOr<ErasedValue>& result) {
        sink->End(result.status());
      });
  return absl::OkStatus();
}

absl::Status StreamService::Insert(const Key& key,
                                   const std::shared_ptr<StreamSink>& sink,
                                   async::MonotonicTime deadline) {
  const async::MonotonicTime now = host_->clock().Now();
  async::MutexLock lock(&mutex_);
  if (interrupted_) {
    return absl::UnavailableError("the worker is shutting down");
  }
  if (streams_.contains(key)) {
    return absl::InvalidArgumentError(
        absl::StrCat("stream ", key.stream, " is already open"));
  }
  ASSIGN_OR_RETURN(net::PerPeerQuota::Reservation reservation,
                   quota_.Admit(sink->reader().name));
  Entry& entry = streams_[key];
  entry.sink = sink;
  entry.asked = now;
  entry.reservation = std::move(reservation);
  if (deadline != async::kNever) {
    entry.timer = CallAt(deadline, [this, key] { Expire(key); });
  }
  if (!non_members_timer_.has_value()) {
    non_members_timer_ =
        CallAt(async::AddDelay(now, limits_.non_member_limit / 2),
               [this] { WatchNonMembers(); });
  }
  return absl::OkStatus();
}

// A Close, or the loss of the reader, that arrived while the function was being
// looked up did not find the stream.
void StreamService::FollowOpen(const Key& key,
                               const std::shared_ptr<StreamSink>& sink,
                               const MethodCall& call) {
  Cancellation::Registration on_cancel =
      call.cancellation->OnCancel([this, gate = gate_, key] {
        Gate::Entry entry(gate.get());
        if (entry) Close(key);
      });
  {
    async::MutexLock lock(&mutex_);
    const auto found = streams_.find(key);
    if (found != streams_.end() && found->second.sink == sink) {
      found->second.on_cancel = std::move(on_cancel);
    }
  }
  if (host_->IsLost(call.peer)) Close(key);
}

async::TimerId StreamService::CallAt(async::MonotonicTime time,
                                     absl::AnyInvocable<void()> action) {
  // The stream must not inherit the TaskContext of the call that opened it.
  async::TaskContext::Scope detached((async::TaskContext()));
  return host_->clock().CallAt(
      time, [gate = gate_, action = std::move(action)]() mutable {
        Gate::Entry entry(gate.get());
        if (entry) action();
      });
}

void StreamService::WatchNonMembers() {
  absl::flat_hash_set<Incarnation> members;
  for (const WorkerInfo& worker : host_->workers()) {
    members.insert(worker.incarnation);
  }
  const async::MonotonicTime now = host_->clock().Now();
  CloseAll([&](const Key& key, const Entry& entry) {
    if (members.contains(key.incarnation)) return false;
    // A waiting request shows that the reader is alive.
    if (entry.last_request != nullptr && !entry.last_request->cancelled() &&
        entry.sink->awaited()) {
      return false;
    }
    return async::TimeBetween(entry.asked, now) >= limits_.non_member_limit;
  });
  async::MutexLock lock(&mutex_);
  non_members_timer_.reset();
  if (streams_.empty() || interrupted_) return;
  non_members_timer_ =
      CallAt(async::AddDelay(now, limits_.non_member_limit / 2),
             [this] { WatchNonMembers(); });
}

async::Future<Message<v1::StreamNextReply>> StreamService::Next(
    const MethodCall& call, const v1::StreamNextRequest& request) {
  using Reply = Message<v1::StreamNextReply>;
  const async::MonotonicTime now = host_->clock().Now();
  std::shared_ptr<StreamSink> sink;
  bool expired = false;
  {
    async::MutexLock lock(&mutex_);
    const Key key = KeyOf(call, request.stream());
    expired = expired_.Contains(key);
    const auto found = streams_.find(key);
    if (found != streams_.end()) {
      sink = found->second.sink;
      found->second.asked = now;
      found->second.last_request = call.cancellation;
    }
  }
  if (sink == nullptr) {
    return async::MakeReadyFuture<Reply>(
        expired ? DeadlinePassed()
                : absl::NotFoundError(absl::StrCat(
                      "no stream ", request.stream(),
                      " is open: it was closed, or the worker has forgotten "
                      "it")));
  }
  return sink->Next(request.sequence(), request.acknowledged())
      .Then([self = host_->info()](absl::StatusOr<StreamSink::Answer> answer)
                -> absl::StatusOr<Reply> {
        RETURN_IF_ERROR(answer);
        Reply reply;
        if (!answer->item.has_value()) {
          SetEnd(self, answer->end, reply.body.mutable_end());
          return reply;
        }
        if (!reply.body.mutable_value()->ParseFromString(
                answer->item->values)) {
          return absl::InternalError("a value of a stream does not encode");
        }
        reply.tensors = std::move(answer->item->tensors);
        return reply;
      });
}

void StreamService::Expire(const Key& key) {
  {
    async::MutexLock lock(&mutex_);
    if (!streams_.contains(key)) return;
    expired_.Add(key);
  }
  End(key, DeadlinePassed());
}

void StreamService::Close(const Key& key) {
  End(key, absl::CancelledError(
               "the reader of this stream has cancelled it or was lost"));
}

void StreamService::End(const Key& key, const absl::Status& status) {
  Entry entry;
  {
    async::MutexLock lock(&mutex_);
    const auto found = streams_.find(key);
    if (found == streams_.end()) return;
    entry = std::move(found->second);
    // Released under the lock.
    entry.reservation = {};
    streams_.erase(found);
  }
  if (entry.timer.has_value()) host_->clock().Cancel(*entry.timer);
  entry.sink->Cancel(status);
}

void StreamService::CloseAll(
    absl::FunctionRef<bool(const Key& key, const Entry& entry)> matches) {
  std::vector<Key> keys;
  {
    async::MutexLock lock(&mutex_);
    for (const auto& [key, entry] : streams_) {
      if (matches(key, entry)) keys.push_back(key);
    }
  }
  for (const Key& key : keys) Close(key);
}

void StreamService::OnWorkerLost(const WorkerInfo& worker,
                                 const absl::Status&) {
  CloseAll([&](const Key& key, const Entry&) {
    return key.incarnation == worker.incarnation;
  });
}

void StreamService::Interrupt() {
  {
    async::MutexLock lock(&mutex_);
    interrupted_ = true;
    if (non_members_timer_.has_value())
      host_->clock().Cancel(*non_members_timer_);
  }
  CloseAll([](const Key&, const Entry&) { return true; });
  gate_->Close();
}

int64_t StreamService::num_open() const {
  async::MutexLock lock(&mutex_);
  return static_cast<int64_t>(streams_.size());
}

}  // namespace hawser::rpc
