#include "rpc/stream/stream_source.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "rpc/agent/agent.h"
#include "rpc/agent/current_call.h"
#include "rpc/errors/error_detail.h"
#include "rpc/functions/function_name.h"
#include "rpc/identity/timeout.h"
#include "rpc/stream/stream_methods.h"
#include "rpc/stream/stream_service.h"
#include "rpc/wire/encoder.h"

namespace hawser::rpc {
namespace {

constexpr int kMaxWindow = 64;
// If Close does not arrive, the stream ends at its deadline or with the loss of
// this worker.
constexpr absl::Duration kCloseTimeout = absl::Seconds(10);

absl::Status StatusOf(const v1::StreamEnd& end) {
  absl::Status status(static_cast<absl::StatusCode>(end.code()), end.message());
  if (!status.ok() && end.has_detail()) {
    SetErrorDetail({.worker = end.detail().worker(),
                    .incarnation = Incarnation(end.detail().incarnation()),
                    .maybe_applied = end.detail().maybe_applied()},
                   status);
  }
  return status;
}

// Converts the error of a request for a value. Even if the request was not
// sent, the function had started.
absl::Status SinceBegun(absl::Status status, const WorkerInfo& writer) {
  ErrorDetail detail = GetErrorDetail(status).value_or(
      ErrorDetail{.worker = writer.name, .incarnation = writer.incarnation});
  detail.maybe_applied = true;
  SetErrorDetail(detail, status);
  return status;
}

}  // namespace

absl::StatusOr<std::shared_ptr<StreamSource>> StreamSource::Open(
    Agent& agent, const Destination& to, const StreamOptions& options,
    std::string_view function, std::string_view signature,
    absl::FunctionRef<absl::Status(Encoder&)> encode) {
  StreamService* const service = agent.service<StreamService>();
  if (service == nullptr) {
    return absl::FailedPreconditionError(
        "no StreamService is attached to this agent");
  }
  ServiceHost& host = agent.host();
  if (options.window < 1 || options.window > kMaxWindow) {
    return absl::InvalidArgumentError(
        absl::StrCat("the window of a stream is ", options.window,
                     "; it must be 1 to ", kMaxWindow));
  }
  RETURN_IF_ERROR(CheckFunctionName(function, signature));
  const absl::Duration timeout =
      options.timeout.value_or(host.default_timeout());
  RETURN_IF_ERROR(CheckTimeout(timeout));
  async::MonotonicTime deadline = async::AddDelay(host.clock().Now(), timeout);
  if (const CurrentCall* current = CurrentCall::Get()) {
    deadline = std::min(deadline, current->deadline());
  }
  ASSIGN_OR_RETURN(WorkerInfo writer, host.FindWorker(to));
  auto source = std::make_shared<StreamSource>(host, std::move(writer),
                                               service->NewStreamId(),
                                               options.window, deadline);

  Encoder encoder(&agent, &source->writer());
  RETURN_IF_ERROR(encode(encoder));
  v1::StreamOpenRequest request;
  request.set_function(std::string(function));
  request.set_signature(std::string(signature));
  if (!request.mutable_arguments()->ParseFromString(encoder.TakeValues())) {
    return absl::InternalError("the arguments of a stream do not encode");
  }
  request.set_stream(source->stream_);
  request.set_window(static_cast<uint32_t>(options.window));
  source->FollowCurrentCall();
  MethodCallOptions call;
  call.timeout = timeout;
  host.CallMethod(source->writer(), kStreamOpenMethod, request,
                  encoder.TakeTensors(), call)
      .OnReady(
          [source](const absl::StatusOr<Message<v1::StreamOpenReply>>& reply) {
            source->OnOpened(reply.status());
          });
  return source;
}

StreamSource::StreamSource(ServiceHost& host, WorkerInfo writer,
                           uint64_t stream, int window,
                           async::MonotonicTime deadline)
    : host_(host),
      writer_(std::move(writer)),
      stream_(stream),
      window_(static_cast<uint64_t>(window)),
      deadline_(deadline) {}

void StreamSource::FollowCurrentCall() {
  const CurrentCall* const current = CurrentCall::Get();
  if (current == nullptr) return;
  Cancellation::Registration parent =
      current->cancellation().OnCancel([weak = weak_from_this()] {
        if (const auto source = weak.lock()) {
          source->Close(absl::CancelledError(
              "the call that reads this stream was cancelled"));
        }
      });
  async::MutexLock lock(&mutex_);
  parent_ = std::move(parent);
}

void StreamSource::OnOpened(const absl::Status& status) {
  Work work;
  {
    async::MutexLock lock(&mutex_);
    opened_ = true;
    if (!status.ok()) EndLocked(0, status);
    work = WorkLocked();
  }
  Do(std::move(work));
}

void StreamSource::Next(Done done) {
  Work work;
  {
    async::MutexLock lock(&mutex_);
    waiting_.push_back(std::move(done));
    work = WorkLocked();
  }
  Do(std::move(work));
}

void StreamSource::Close(absl::Status status) {
  Work work;
  {
    async::MutexLock lock(&mutex_);
    if (end_.has_value() && delivered_ >= end_->first) {
      status = end_->second;
    }
    arrived_.clear();
    end_.reset();
    EndLocked(delivered_, std::move(status));
    work = WorkLocked();
  }
  Do(std::move(work));
}

void StreamSource::EndLocked(uint64_t sequence, absl::Status status) {
  if (end_.has_value() && end_->first <= sequence) return;
  end_.emplace(sequence, std::move(status));
}

void StreamSource::OnReply(uint64_t sequence, absl::StatusOr<Reply> reply) {
  Work work;
  {
    async::MutexLock lock(&mutex_);
    under_way_.erase(sequence);
    if (!reply.ok()) {
      EndLocked(sequence, SinceBegun(reply.status(), writer_));
    } else if (reply->body.has_end()) {
      EndLocked(sequence, StatusOf(reply->body.end()));
    } else if (!end_.has_value() || sequence < end_->first) {
      arrived_[sequence] = {reply->body.value().SerializeAsString(),
                            std::move(reply->tensors)};
      while (arrived_.contains(received_)) ++received_;
    }
    work = WorkLocked();
  }
  Do(std::move(work));
}

StreamSource::Work StreamSource::WorkLocked() {
  Work work;
  while (!waiting_.empty()) {
    if (auto found = arrived_.find(delivered_); found != arrived_.end()) {
      work.deliveries.emplace_back(std::move(waiting_.front()),
                                   std::move(found->second));
      arrived_.erase(found);
      ++delivered_;
    } else if (end_.has_value() && end_->first <= delivered_) {
      if (end_->second.ok()) {
        work.deliveries.emplace_back(std::move(waiting_.front()), std::nullopt);
      } else {
        work.deliveries.emplace_back(std::move(waiting_.front()), end_->second);
      }
    } else {
      break;
    }
    waiting_.pop_front();
  }
  if (end_.has_value()) {
    // Requests beyond the end are useless, as is the stream once all values
    // before it have arrived.
    auto beyond = under_way_.lower_bound(end_->first);
    for (auto it = beyond; it != under_way_.end(); ++it) {
      work.given_up.push_back(it->second);
    }
    under_way_.erase(beyond, under_way_.end());
    if (opened_ && !closed_ && received_ >= end_->first) {
      closed_ = work.close = true;
    }
  } else if (opened_) {
    work.acknowledged = received_;
    while (asked_ < delivered_ + window_) work.requests.push_back(asked_++);
  }
  return work;
}

void StreamSource::Do(Work&& work) {
  for (const uint64_t sequence : work.requests) {
    Ask(sequence, work.acknowledged);
  }
  for (const async::Future<Reply>& future : work.given_up) future.Cancel();
  if (work.close) {
    v1::StreamCloseRequest request;
    request.set_stream(stream_);
    host_
        .CallMethod(writer_, kStreamCloseMethod, request, {},
                    {.timeout = kCloseTimeout, .inherit_deadline = false})
        .OnReady([](const auto&) {});
  }
  for (auto& [done, item] : work.deliveries) std::move(done)(std::move(item));
}

void StreamSource::Ask(uint64_t sequence, uint64_t acknowledged) {
  v1::StreamNextRequest request;
  request.set_stream(stream_);
  request.set_sequence(sequence);
  request.set_acknowledged(acknowledged);
  MethodCallOptions options;
  // The request belongs to the stream, not to the call that reads the previous
  // value.
  options.inherit_deadline = false;
  options.timeout = std::max(
      absl::ZeroDuration(), async::TimeBetween(host_.clock().Now(), deadline_));
  async::Future<Reply> reply =
      host_.CallMethod(writer_, kStreamNextMethod, request, {}, options);
  {
    async::MutexLock lock(&mutex_);
    if (!end_.has_value()) under_way_.emplace(sequence, reply);
  }
  reply.OnReady([self = shared_from_this(),
                 sequence](const absl::StatusOr<Reply>& result) {
    self->OnReply(sequence, result);
  });
}

}  // namespace hawser::rpc
