#include "rpc/grpc/health_calls.h"

#include <utility>

#include "grpcpp/server_context.h"
#include "grpcpp/support/async_stream.h"
#include "grpcpp/support/async_unary_call.h"
#include "net/grpc/completion_event.h"
#include "net/health/health_watch.h"
#include "rpc/grpc/poller.h"

namespace hawser::rpc {

using ::grpc::health::v1::HealthCheckRequest;
using ::grpc::health::v1::HealthCheckResponse;

// One call of Check, from its registration until its reply.
class HealthCalls::CheckCall final
    : public net::CompletionEvent,
      public std::enable_shared_from_this<CheckCall> {
 public:
  explicit CheckCall(HealthCalls* calls) : calls_(*calls) {}

  static void RequestNext(HealthCalls* calls) {
    Gate::Entry entry(calls->gate_.get());
    if (!entry) return;
    auto call = std::make_shared<CheckCall>(calls);
    call->self_ = call;
    calls->service_.RequestCheck(&call->context_, &call->request_,
                                 &call->writer_, calls->queue_, calls->queue_,
                                 call.get());
  }

  void OnEvent(bool ok) override {
    const std::shared_ptr<CheckCall> self = std::move(self_);
    if (!ok || std::exchange(arrived_, true)) return;
    RequestNext(&calls_);
    Gate::Entry entry(calls_.gate_.get());
    if (!entry) return;
    HealthCheckResponse response;
    const ::grpc::Status status =
        net::CheckHealth(*calls_.health_, request_, response);
    self_ = self;
    if (status.ok()) {
      writer_.Finish(response, status, this);
    } else {
      writer_.FinishWithError(status, this);
    }
  }

 private:
  HealthCalls& calls_;
  ::grpc::ServerContext context_;
  HealthCheckRequest request_;
  ::grpc::ServerAsyncResponseWriter<HealthCheckResponse> writer_{&context_};
  bool arrived_ = false;
  // Set while an event is pending.
  std::shared_ptr<CheckCall> self_;
};

// One call of Watch, from its registration until its end. Each pending event
// holds a reference.
class HealthCalls::WatchCall final : public net::HealthWatch {
 public:
  explicit WatchCall(HealthCalls* calls)
      : HealthWatch(calls->health_), calls_(*calls) {}

  static void RequestNext(HealthCalls* calls) {
    Gate::Entry entry(calls->gate_.get());
    if (!entry) return;
    auto call = std::make_shared<WatchCall>(calls);
    call->arrived_.self = call;
    call->done_.self = call;
    call->context_.AsyncNotifyWhenDone(&call->done_);
    calls->service_.RequestWatch(&call->context_, &call->request_,
                                 &call->writer_, calls->queue_, calls->queue_,
                                 &call->arrived_);
  }

 private:
  struct Event final : public net::CompletionEvent {
    using Callback = void (WatchCall::*)(bool);
    explicit Event(Callback event_callback) : callback(event_callback) {}

    void OnEvent(bool ok) override {
      const std::shared_ptr<WatchCall> call = std::move(self);
      (call.get()->*callback)(ok);
    }

    const Callback callback;
    std::shared_ptr<WatchCall> self;
  };

  std::shared_ptr<WatchCall> Self() {
    return std::static_pointer_cast<WatchCall>(shared_from_this());
  }

  void OnArrived(bool ok) {
    if (!ok) {
      // The server shuts down; there are no further events.
      done_.self.reset();
      return;
    }
    RequestNext(&calls_);
    Begin(request_.service());
  }
  void OnDone(bool) { OnCancelled(); }
  void OnSent(bool ok) { OnWritten(ok); }
  void OnFinished(bool) {}

  void Write(ServingStatus status) override {
    Gate::Entry entry(calls_.gate_.get());
    if (!entry) return;
    response_.set_status(status);
    sent_.self = Self();
    writer_.Write(response_, &sent_);
  }
  void Finish(const ::grpc::Status& status) override {
    Gate::Entry entry(calls_.gate_.get());
    if (!entry) return;
    finished_.self = Self();
    writer_.Finish(status, &finished_);
  }

  HealthCalls& calls_;
  ::grpc::ServerContext context_;
  HealthCheckRequest request_;
  HealthCheckResponse response_;
  ::grpc::ServerAsyncWriter<HealthCheckResponse> writer_{&context_};
  Event arrived_{&WatchCall::OnArrived};
  Event done_{&WatchCall::OnDone};
  Event sent_{&WatchCall::OnSent};
  Event finished_{&WatchCall::OnFinished};
};

HealthCalls::HealthCalls(std::shared_ptr<net::Health> health,
                         ::grpc::ServerBuilder& builder,
                         ::grpc::ServerCompletionQueue* queue,
                         std::shared_ptr<Gate> gate)
    : health_(std::move(health)), queue_(queue), gate_(std::move(gate)) {
  builder.RegisterService(&service_);
}

HealthCalls::~HealthCalls() = default;

void HealthCalls::Start() {
  CheckCall::RequestNext(this);
  WatchCall::RequestNext(this);
}

}  // namespace hawser::rpc
