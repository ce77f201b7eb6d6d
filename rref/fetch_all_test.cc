// Fetches of several references at once.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/future.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/rref.pb.h"
#include "rpc/agent/service_host.h"
#include "rpc/functions/function.h"
#include "rpc/testing/agent_test_fixture.h"
#include "rpc/testing/fakes/call_counter.h"
#include "rref/rref.h"
#include "rref/rref_service.h"
#include "rref/service_methods.h"
#include "rref/wire_ids.h"
#include "tensor/tensor.h"

namespace hawser::rref {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

inline constexpr rpc::Function<std::string(std::string)> kEcho{
    "fetch_all_test.Echo"};
inline constexpr rpc::Function<std::string()> kFail{"fetch_all_test.Fail"};
inline constexpr rpc::Function<Tensor(double)> kFull{"fetch_all_test.Full"};
inline constexpr rpc::Function<RRef<Tensor>()> kShareOnes{
    "fetch_all_test.ShareOnes"};

class FetchAllTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(
        job_.registry().Register(kEcho, [](std::string text) { return text; }),
        IsOk());
    ASSERT_THAT(
        job_.registry().Register(kFail,
                                 []() -> absl::StatusOr<std::string> {
                                   return absl::DataLossError("no such row");
                                 }),
        IsOk());
    ASSERT_THAT(
        job_.registry().Register(
            kFull, [](double value) { return Tensor::Full({3}, value); }),
        IsOk());
    job_.StartAll(3, [&](int rank, rpc::AgentOptions& options) {
      options.services.push_back(std::make_unique<RRefService>());
      if (rank == 0) options.observers.push_back(counter_);
    });
  }

  // A reference to `text`, after its creation.
  RRef<std::string> Text(const std::string& owner, const std::string& text) {
    auto made = Remote(job_.agent(0), owner, kEcho, text);
    EXPECT_THAT(made, IsOk());
    EXPECT_THAT(made->WhenConfirmed().Wait(), IsOk());
    return *made;
  }

  const std::shared_ptr<rpc::CallCounter> counter_ =
      std::make_shared<rpc::CallCounter>();
  rpc::TestJob job_;
};

TEST_F(FetchAllTest, ValuesOfOneOwnerComeInOneMessageInOrder) {
  const RRef<std::string> a = Text("w1", "a");
  const RRef<std::string> b = Text("w2", "b");
  const RRef<std::string> c = Text("w1", "c");
  auto here = MakeLocal(job_.agent(0), std::string("here"));
  ASSERT_THAT(here, IsOk());
  EXPECT_THAT(ToHereAll<std::string>({a, b, *here, c}),
              IsOkAndHolds(ElementsAre("a", "b", "here", "c")));
  EXPECT_THAT(counter_->CountsOf("hawser.v1.RRefService.Fetch"),
              ElementsAre(Pair("w1", 1), Pair("w2", 1)));
}

TEST_F(FetchAllTest, ReferencesMayRepeatAndBeNone) {
  const RRef<std::string> a = Text("w1", "a");
  EXPECT_THAT(ToHereAll<std::string>({a, a}),
              IsOkAndHolds(ElementsAre("a", "a")));
  EXPECT_THAT(ToHereAll(std::vector<RRef<std::string>>()),
              IsOkAndHolds(ElementsAre()));
}

TEST_F(FetchAllTest, TensorsAreThoseOfTheirValues) {
  std::vector<RRef<Tensor>> references;
  for (int i = 0; i < 4; ++i) {
    auto made = Remote(job_.agent(0), "w1", kFull, static_cast<double>(i));
    ASSERT_THAT(made, IsOk());
    ASSERT_THAT(made->WhenConfirmed().Wait(), IsOk());
    references.push_back(*made);
  }
  const auto values = ToHereAll(references);
  ASSERT_THAT(values, IsOk());
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ((*values)[i].data<float>()[2], static_cast<float>(i));
  }
}

TEST_F(FetchAllTest, ErrorOfOneValueIsReturned) {
  auto failed = Remote(job_.agent(0), "w1", kFail);
  ASSERT_THAT(failed, IsOk());
  ASSERT_THAT(failed->WhenConfirmed().Wait(), IsOk());
  EXPECT_THAT(ToHereAll<std::string>({Text("w1", "a"), *failed}),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("no such row")));
}

// A value that is still being created delays only its own message.
TEST_F(FetchAllTest, CreationsInProgressAreFetchedAlone) {
  const RRef<std::string> a = Text("w1", "a");
  const RRef<std::string> b = Text("w1", "b");
  job_.network().SetMethodFaults("/hawser.v1.RRefService/Create",
                                 {.drop_request = 1});
  auto never =
      Remote(job_.agent(0), "w1",
             rpc::CallOptions{.timeout = absl::Milliseconds(50)}, kEcho, "c");
  ASSERT_THAT(never, IsOk());
  EXPECT_THAT(ToHereAll<std::string>({a, *never, b}),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_THAT(counter_->CountsOf("hawser.v1.RRefService.Fetch"),
              ElementsAre(Pair("w1", 2)));
}

TEST_F(FetchAllTest, WrongTypeOfOneValueIsNamed) {
  const RRef<std::string> a = Text("w1", "a");
  auto full = Remote(job_.agent(0), "w1", kFull, 1.0);
  ASSERT_THAT(full, IsOk());
  ASSERT_THAT(full->WhenConfirmed().Wait(), IsOk());
  const RRef<std::string> wrong(full->reference());
  EXPECT_THAT(ToHereAll<std::string>({a, wrong}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("refers to a value of type Tensor")));
}

// A fetch of several values never holds the lock of one while it waits for
// another's: two writers could wait for it and for each other.
TEST_F(FetchAllTest, HoldsNoLockWhileItWaitsForAnother) {
  std::vector<RRef<Tensor>> owned;
  std::vector<RRef<Tensor>> users;
  for (int i = 0; i < 2; ++i) {
    auto made = MakeLocal(job_.agent(1), Tensor::Full({3}, i));
    ASSERT_THAT(made, IsOk());
    owned.push_back(*made);
  }
  int next = 0;
  rpc::FunctionRegistry& registry = job_.registry();
  ASSERT_THAT(registry.Register(kShareOnes, [&] { return owned[next++]; }),
              IsOk());
  for (int i = 0; i < 2; ++i) {
    auto user = job_.agent(0).Sync("w1", kShareOnes);
    ASSERT_THAT(user, IsOk());
    ASSERT_THAT(user->WhenConfirmed().Wait(), IsOk());
    users.push_back(*user);
  }
  const auto lock = [&](int i) -> AsyncSharedMutex& {
    return owned[i].reference()->value()->lock();
  };
  auto held = lock(1).AcquireExclusive().Wait();
  ASSERT_THAT(held, IsOk());
  const auto values = ToHereAllAsync(users);
  // Messages may overtake each other, but not by so many round trips.
  for (int i = 0; i < 100; ++i) {
    ASSERT_THAT(job_.agent(0).Sync("w1", kEcho, std::string("x")), IsOk());
  }
  EXPECT_THAT(lock(0).AcquireExclusive().WaitFor(absl::Seconds(10)), IsOk());
  EXPECT_FALSE(values.ready());
  held->reset();
  const auto& fetched = values.Wait();
  ASSERT_THAT(fetched, IsOk());
  EXPECT_EQ((*fetched)[0].data<float>()[0], 0);
  EXPECT_EQ((*fetched)[1].data<float>()[0], 1);
  owned.clear();
}

TEST_F(FetchAllTest, RequestThatRepeatsAReferenceIsRefused) {
  const RRef<std::string> a = Text("w1", "a");
  v1::RRefFetchRequest request;
  for (int i = 0; i < 2; ++i) *request.add_rrefs() = ToProto(a.id());
  EXPECT_THAT(job_.agent(0)
                  .host()
                  .CallMethod(a.owner(), kFetchMethod, request, {}, {})
                  .Wait(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("twice")));
}

}  // namespace
}  // namespace hawser::rref
