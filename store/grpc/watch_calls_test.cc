#include "store/grpc/watch_calls.h"

#include <grpcpp/client_context.h>
#include <grpcpp/support/status.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "async/future.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/store.pb.h"

namespace hawser::store::internal {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Done = std::function<void(grpc::Status)>;

grpc::Status Unavailable() {
  return {grpc::StatusCode::UNAVAILABLE, "no connection"};
}

TEST(WatchCallsTest, RepeatsACallUntilItHasAReply) {
  int attempts = 0;
  WatchCalls calls("the store", [&](grpc::ClientContext*, const auto* request,
                                    auto* reply, const Done& done) {
    EXPECT_EQ(request->keys(0).key(), "k");
    ++attempts;
    if (attempts < 3) {
      done(Unavailable());
    } else {
      reply->add_values("v");
      done(grpc::Status::OK);
    }
  });
  v1::StoreAwaitChangeRequest request;
  request.add_keys()->set_key("k");
  EXPECT_THAT(calls.Start(std::move(request)).Wait(),
              IsOkAndHolds(ElementsAre("v")));
  EXPECT_EQ(attempts, 3);
}

TEST(WatchCallsTest, OtherErrorsEndACallAndNameTheStore) {
  WatchCalls calls("the store", [](grpc::ClientContext*, const auto*, auto*,
                                   const Done& done) {
    done({grpc::StatusCode::RESOURCE_EXHAUSTED, "too many"});
  });
  EXPECT_THAT(calls.Start({}).Wait(),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("the store: too many")));
}

// The transport may hold its callback for a while after it has run it.
TEST(WatchCallsTest, DestructionCompletesCallsThatTheTransportStillHolds) {
  std::vector<Done> held;
  std::optional<WatchCalls> calls;
  calls.emplace("the store",
                [&](grpc::ClientContext*, const auto*, auto*, Done done) {
                  held.push_back(done);
                  done(Unavailable());
                });
  const async::Future<std::vector<std::string>> paused = calls->Start({});
  calls.reset();
  ASSERT_TRUE(paused.ready());
  EXPECT_THAT(paused.Wait(), StatusIs(absl::StatusCode::kCancelled));
}

TEST(WatchCallsTest, CancelledCallIsNotRepeated) {
  Done finish;
  int attempts = 0;
  WatchCalls calls("the store",
                   [&](grpc::ClientContext*, const auto*, auto*, Done done) {
                     ++attempts;
                     finish = std::move(done);
                   });
  const async::Future<std::vector<std::string>> watch = calls.Start({});
  watch.Cancel();
  finish(Unavailable());
  EXPECT_THAT(watch.Wait(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(attempts, 1);
}

}  // namespace
}  // namespace hawser::store::internal
