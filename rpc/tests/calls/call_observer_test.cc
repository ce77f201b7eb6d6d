// Observers of calls, and the trace context that calls carry.

#include "rpc/agent/call_observer.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/future.h"
#include "async/mutex.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/agent/agent.h"
#include "rpc/agent/current_call.h"
#include "rpc/agent/service.h"
#include "rpc/agent/service_host.h"
#include "rpc/functions/function.h"
#include "rpc/functions/service_method.h"
#include "rpc/identity/trace_context.h"
#include "rpc/testing/agent_test_fixture.h"
#include "rpc/testing/method_test_service.pb.h"
#include "rpc/testing/transport_test_param.h"
#include "tensor/tensor.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::hawser::rpc_test::EchoReply;
using ::hawser::rpc_test::EchoRequest;
using ::testing::Ge;
using ::testing::IsEmpty;

constexpr ServiceMethod<EchoRequest, EchoReply> kRead{
    "hawser.rpc_test.EchoService.Read"};
constexpr Function<tensor::Tensor(tensor::Tensor)> kLeaf{"test.Leaf"};
constexpr Function<tensor::Tensor(tensor::Tensor)> kForward{"test.Forward"};
constexpr Function<void()> kFail{"test.Fail"};
constexpr Function<std::string()> kTrace{"test.Trace"};

// Records calls, and makes each of them a span of a trace: "<trace>-<span>".
class SpanObserver final : public CallObserver {
 public:
  struct Span {
    CallStart::Side side;
    std::string method;
    std::string function;
    std::string peer;
    std::string parent;
    std::string context;
    bool ended = false;
    absl::Status status;
    uint64_t request_bytes = 0;
    uint64_t reply_bytes = 0;
  };

  explicit SpanObserver(std::string worker) : worker_(std::move(worker)) {}

  std::unique_ptr<Call> Begin(const CallStart& start) override {
    async::MutexLock lock(&mutex_);
    const size_t index = spans_.size();
    Span span;
    span.side = start.side;
    span.method = std::string(start.method);
    span.function = std::string(start.function);
    span.peer = start.peer.name;
    span.parent = start.trace->traceparent;
    span.context = absl::StrCat(worker_, ".", index);
    start.trace->traceparent = span.context;
    spans_.push_back(std::move(span));
    return std::make_unique<Recorder>(this, index);
  }

  std::vector<Span> spans() const {
    async::MutexLock lock(&mutex_);
    return spans_;
  }

 private:
  class Recorder final : public Call {
   public:
    Recorder(SpanObserver* observer, size_t index)
        : observer_(*observer), index_(index) {}
    void End(const CallEnd& end) override {
      async::MutexLock lock(&observer_.mutex_);
      Span& span = observer_.spans_[index_];
      EXPECT_FALSE(span.ended);
      span.ended = true;
      span.status = end.status;
      span.request_bytes = end.request_bytes;
      span.reply_bytes = end.reply_bytes;
    }

   private:
    SpanObserver& observer_;
    const size_t index_;
  };

  const std::string worker_;
  mutable async::Mutex mutex_;
  std::vector<Span> spans_ ABSL_GUARDED_BY(mutex_);
};

class ReadService final : public Service {
 public:
  std::string_view name() const override { return "read"; }
  absl::Status Start(ServiceHost& host) override {
    return host.RegisterMethod(
        kRead, [](const MethodCall&, Message<EchoRequest> request) {
          Message<EchoReply> reply;
          reply.body.set_text(request.body.text());
          return async::MakeReadyFuture<Message<EchoReply>>(std::move(reply));
        });
  }
};

class CallObserverTest : public testing::TestWithParam<TransportParam> {
 protected:
  CallObserverTest() : job_(MakeTransportFactory(GetParam())) {}

  void SetUp() override {
    ASSERT_THAT(job_.registry().Register(
                    kLeaf, [](tensor::Tensor value) { return value; }),
                IsOk());
    ASSERT_THAT(
        job_.registry().Register(kForward,
                                 [](tensor::Tensor value) {
                                   return CurrentCall::Get()->agent().Async(
                                       "w2", kLeaf, value);
                                 }),
        IsOk());
    ASSERT_THAT(job_.registry().Register(
                    kFail, [] { return absl::DataLossError("the disk"); }),
                IsOk());
    ASSERT_THAT(
        job_.registry().Register(
            kTrace, [] { return CurrentCall::Get()->trace().traceparent; }),
        IsOk());
  }

  // Workers of `observed` get an observer.
  void Start(const std::vector<int>& observed) {
    observers_.resize(3);
    job_.StartAll(3, [&](int rank, AgentOptions& options) {
      options.services.push_back(std::make_unique<ReadService>());
      for (const int worker : observed) {
        if (worker != rank) continue;
        observers_[rank] =
            std::make_shared<SpanObserver>(absl::StrCat("span.w", rank));
        options.observers.push_back(observers_[rank]);
      }
    });
  }
  std::vector<SpanObserver::Span> Spans(int rank) {
    return observers_[rank]->spans();
  }

  TestJob job_;
  std::vector<std::shared_ptr<SpanObserver>> observers_;
};

TEST_P(CallObserverTest, TraceFollowsCallsThroughWorkers) {
  Start({0, 1, 2});
  const tensor::Tensor value = tensor::Tensor::Zeros({1 << 18});
  ASSERT_THAT(job_.agent(0).Sync("w1", kForward, value), IsOk());
  job_.StopAll();

  ASSERT_EQ(Spans(0).size(), 1);
  ASSERT_EQ(Spans(1).size(), 2);
  ASSERT_EQ(Spans(2).size(), 1);
  const SpanObserver::Span client = Spans(0)[0];
  const SpanObserver::Span forward = Spans(1)[0];
  const SpanObserver::Span nested = Spans(1)[1];
  const SpanObserver::Span leaf = Spans(2)[0];
  EXPECT_EQ(client.parent, "");
  EXPECT_EQ(forward.parent, client.context);
  EXPECT_EQ(nested.parent, forward.context);
  EXPECT_EQ(leaf.parent, nested.context);

  EXPECT_EQ(client.side, CallStart::Side::kClient);
  EXPECT_EQ(forward.side, CallStart::Side::kServer);
  EXPECT_EQ(nested.side, CallStart::Side::kClient);
  EXPECT_EQ(client.peer, "w1");
  EXPECT_EQ(forward.peer, "w0");
  EXPECT_EQ(leaf.peer, "w1");
  for (const auto& span : {client, forward, nested, leaf}) {
    EXPECT_TRUE(span.ended);
    EXPECT_THAT(span.status, IsOk());
    EXPECT_EQ(span.method, "hawser.v1.WorkerService.Call");
    EXPECT_THAT(span.request_bytes, Ge(1 << 20));
    EXPECT_THAT(span.reply_bytes, Ge(1 << 20));
  }
  EXPECT_EQ(client.function, "test.Forward");
  EXPECT_EQ(leaf.function, "test.Leaf");
  EXPECT_EQ(client.request_bytes, forward.request_bytes);
  EXPECT_EQ(client.reply_bytes, forward.reply_bytes);
}

TEST_P(CallObserverTest, WorkersWithoutObserversPassTheTraceOn) {
  Start({0, 2});
  ASSERT_THAT(job_.agent(0).Sync("w1", kForward, tensor::Tensor::Zeros({1})),
              IsOk());
  job_.StopAll();
  EXPECT_EQ(Spans(2)[0].parent, Spans(0)[0].context);
}

TEST_P(CallObserverTest, ErrorsReachBothEnds) {
  Start({0, 1});
  EXPECT_THAT(job_.agent(0).Sync("w1", kFail),
              StatusIs(absl::StatusCode::kDataLoss));
  job_.StopAll();
  for (const int rank : {0, 1}) {
    ASSERT_EQ(Spans(rank).size(), 1);
    EXPECT_TRUE(Spans(rank)[0].ended);
    EXPECT_THAT(Spans(rank)[0].status, StatusIs(absl::StatusCode::kDataLoss));
    EXPECT_EQ(Spans(rank)[0].reply_bytes, 0);
  }
}

TEST_P(CallObserverTest, MethodsOfServicesAreObserved) {
  Start({0, 1});
  EchoRequest request;
  request.set_text("hello");
  ASSERT_THAT(job_.agent(0).host().CallMethod("w1", kRead, request).Wait(),
              IsOk());
  job_.StopAll();
  for (const int rank : {0, 1}) {
    ASSERT_EQ(Spans(rank).size(), 1);
    EXPECT_EQ(Spans(rank)[0].method, "hawser.rpc_test.EchoService.Read");
    EXPECT_EQ(Spans(rank)[0].function, "");
    EXPECT_TRUE(Spans(rank)[0].ended);
  }
  EXPECT_EQ(Spans(1)[0].parent, Spans(0)[0].context);
}

// Sets a context that no request may carry.
class InvalidTraceObserver final : public CallObserver {
 public:
  std::unique_ptr<Call> Begin(const CallStart& start) override {
    ++num_calls;
    if (start.side == CallStart::Side::kClient) {
      start.trace->traceparent =
          std::string(TraceContext::kMaxParentBytes + 1, 'x');
    }
    return nullptr;
  }
  std::atomic<int> num_calls = 0;
};

TEST_P(CallObserverTest, InvalidTraceIsDroppedAndTheCallGoesOn) {
  const auto observer = std::make_shared<InvalidTraceObserver>();
  job_.StartAll(2, [&](int rank, AgentOptions& options) {
    if (rank == 0) options.observers.push_back(observer);
  });
  const absl::StatusOr<std::string> trace = job_.agent(0).Sync("w1", kTrace);
  ASSERT_THAT(trace, IsOk());
  EXPECT_THAT(*trace, IsEmpty());
  EXPECT_EQ(observer->num_calls, 1);
}

INSTANTIATE_TEST_SUITE_P(Transports, CallObserverTest,
                         testing::ValuesIn(kTransportParams),
                         TransportParamName());

TEST(CallObserverOptionsTest, NullObserverIsRefused) {
  TestJob job;
  AgentOptions options = job.Options(0, 1);
  options.observers.push_back(nullptr);
  EXPECT_THAT(Agent::Start(std::move(options)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::HasSubstr("observers")));
}

}  // namespace
}  // namespace hawser::rpc
