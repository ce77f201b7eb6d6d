#include "rpc/agent/state/call_observation.h"

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/agent/call_observer.h"
#include "rpc/identity/trace_context.h"
#include "rpc/identity/worker_info.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::IsNull;
using ::testing::NotNull;
using ::testing::SizeIs;

struct RecordedEnd {
  absl::Status status;
  uint64_t request_bytes;
  uint64_t reply_bytes;
};

// Records the calls that begin and end.
class RecordingObserver final : public CallObserver {
 public:
  enum class Fault { kNone, kIgnores, kThrowsInBegin, kThrowsInEnd };

  explicit RecordingObserver(Fault fault = Fault::kNone) : fault_(fault) {}

  std::unique_ptr<Call> Begin(const CallStart& start) override {
    begun.emplace_back(start.function);
    if (fault_ == Fault::kThrowsInBegin) throw std::out_of_range("in Begin");
    if (fault_ == Fault::kIgnores) return nullptr;
    return std::make_unique<RecordedCall>(this);
  }

  std::vector<std::string> begun;
  std::vector<RecordedEnd> ended;

 private:
  class RecordedCall final : public Call {
   public:
    explicit RecordedCall(RecordingObserver* observer) : observer_(*observer) {}

    void End(const CallEnd& end) override {
      observer_.ended.push_back(
          {end.status, end.request_bytes, end.reply_bytes});
      if (observer_.fault_ == Fault::kThrowsInEnd) {
        throw std::out_of_range("in End");
      }
    }

   private:
    RecordingObserver& observer_;
  };

  const Fault fault_;
};

using Fault = RecordingObserver::Fault;

class CallObservationTest : public testing::Test {
 protected:
  std::shared_ptr<CallObservation> Begin(const CallObservers& observers) {
    return CallObservation::Begin(observers,
                                  {.side = CallStart::Side::kClient,
                                   .method = "hawser.v1.WorkerService.Call",
                                   .function = "f",
                                   .peer = peer_,
                                   .trace = &trace_});
  }

  const WorkerInfo peer_{.name = "w1",
                         .id = WorkerId(1),
                         .incarnation = Incarnation{8},
                         .address = "host1:1"};
  TraceContext trace_;
};

TEST_F(CallObservationTest, WithoutObserversThereIsNoObservation) {
  EXPECT_THAT(Begin({}), IsNull());
}

TEST_F(CallObservationTest, EachObserverSeesTheCallWithTheSumOfItsBytes) {
  const auto first = std::make_shared<RecordingObserver>();
  const auto second = std::make_shared<RecordingObserver>();
  const CallObservers observers{first, second};
  const std::shared_ptr<CallObservation> observation = Begin(observers);
  ASSERT_THAT(observation, NotNull());
  observation->AddRequest(100);
  observation->AddRequest(23);
  observation->AddReply(40);
  observation->AddReply(5);
  for (const auto& observer : {first, second}) {
    EXPECT_THAT(observer->begun, ElementsAre("f"));
    EXPECT_THAT(observer->ended, IsEmpty());
  }
  observation->End(absl::AbortedError("test"));
  for (const auto& observer : {first, second}) {
    ASSERT_THAT(observer->ended, SizeIs(1));
    EXPECT_THAT(observer->ended[0].status,
                StatusIs(absl::StatusCode::kAborted, "test"));
    EXPECT_EQ(observer->ended[0].request_bytes, 123u);
    EXPECT_EQ(observer->ended[0].reply_bytes, 45u);
  }
}

TEST_F(CallObservationTest, EndsOnce) {
  const auto observer = std::make_shared<RecordingObserver>();
  const CallObservers observers{observer};
  const std::shared_ptr<CallObservation> observation = Begin(observers);
  observation->End(absl::OkStatus());
  observation->AddReply(1);
  observation->End(absl::AbortedError("late"));
  ASSERT_THAT(observer->ended, SizeIs(1));
  EXPECT_THAT(observer->ended[0].status, IsOk());
  EXPECT_EQ(observer->ended[0].reply_bytes, 0u);
}

TEST_F(CallObservationTest, ObserverThatIgnoresTheCallIsNotAskedAgain) {
  const auto ignoring = std::make_shared<RecordingObserver>(Fault::kIgnores);
  const auto other = std::make_shared<RecordingObserver>();
  const CallObservers observers{ignoring, other};
  const std::shared_ptr<CallObservation> observation = Begin(observers);
  ASSERT_THAT(observation, NotNull());
  observation->End(absl::OkStatus());
  EXPECT_THAT(ignoring->begun, SizeIs(1));
  EXPECT_THAT(ignoring->ended, IsEmpty());
  EXPECT_THAT(other->ended, SizeIs(1));
}

TEST_F(CallObservationTest, ObserverThatThrowsHarmsNeitherCallNorOthers) {
  const auto in_begin =
      std::make_shared<RecordingObserver>(Fault::kThrowsInBegin);
  const auto in_end = std::make_shared<RecordingObserver>(Fault::kThrowsInEnd);
  const auto last = std::make_shared<RecordingObserver>();
  const CallObservers observers{in_begin, in_end, last};
  const std::shared_ptr<CallObservation> observation = Begin(observers);
  ASSERT_THAT(observation, NotNull());
  observation->End(absl::OkStatus());
  EXPECT_THAT(in_begin->begun, SizeIs(1));
  EXPECT_THAT(in_begin->ended, IsEmpty());
  EXPECT_THAT(in_end->ended, SizeIs(1));
  EXPECT_THAT(last->begun, SizeIs(1));
  EXPECT_THAT(last->ended, SizeIs(1));
}

// Its callbacks run, for example, before the request is encoded.
TEST_F(CallObservationTest, ObserversMayReplaceTheTrace) {
  class Replacing final : public CallObserver {
   public:
    std::unique_ptr<Call> Begin(const CallStart& start) override {
      start.trace->traceparent += "+";
      return nullptr;
    }
  };
  const CallObservers observers{std::make_shared<Replacing>(),
                                std::make_shared<Replacing>()};
  trace_.traceparent = "parent";
  EXPECT_THAT(Begin(observers), NotNull());
  EXPECT_EQ(trace_.traceparent, "parent++");
}

}  // namespace
}  // namespace hawser::rpc
