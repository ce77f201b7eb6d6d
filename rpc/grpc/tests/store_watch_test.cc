// Tests of watches of a store in a process with a transport.

#include <pthread.h>

#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "async/future.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/grpc/transport.h"
#include "store/grpc/server.h"
#include "store/grpc/store.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::ElementsAre;

class StoreWatchTest : public testing::Test {
 protected:
  void SetUp() override {
    auto server = store::StoreServer::Start({});
    ASSERT_THAT(server, IsOk());
    server_ = *std::move(server);
    auto store = store::GrpcStore::Connect({.address = server_->address()});
    ASSERT_THAT(store, IsOk());
    store_ = *std::move(store);
    ASSERT_THAT(transport_.Listen("127.0.0.1:0", {}), IsOk());
    watch_ = store_->WhenChanged({{"k", ""}});
    while (server_->stats().num_waiting == 0) std::this_thread::yield();
  }

  std::unique_ptr<store::StoreServer> server_;
  GrpcTransport transport_{{}};
  std::unique_ptr<store::GrpcStore> store_;
  async::Future<std::vector<std::string>> watch_;
};

// Threads of gRPC's own would compete with it for what arrives.
TEST_F(StoreWatchTest, EndsInThePollingThreadOfTheTransport) {
  std::promise<std::string> thread_name;
  watch_.OnReady([&](const absl::StatusOr<std::vector<std::string>>&) {
    char name[16] = {};
    pthread_getname_np(pthread_self(), name, sizeof(name));
    thread_name.set_value(name);
  });
  EXPECT_THAT(store_->Set("k", "v"), IsOk());
  EXPECT_EQ(thread_name.get_future().get(), "rpc-poll");
}

TEST_F(StoreWatchTest, ContinuesAfterTheShutdownOfTheTransport) {
  transport_.Shutdown();
  EXPECT_THAT(store_->Set("k", "v"), IsOk());
  EXPECT_THAT(watch_.Wait(), IsOkAndHolds(ElementsAre("v")));
}

TEST_F(StoreWatchTest, EndsWithTheStore) {
  store_.reset();
  EXPECT_THAT(watch_.Wait(), StatusIs(absl::StatusCode::kCancelled));
  while (server_->stats().num_waiting != 0) std::this_thread::yield();
}

}  // namespace
}  // namespace hawser::rpc
