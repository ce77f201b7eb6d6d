#include "store/redis/store.h"

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "net/testing/tcp_proxy.h"
#include "store/redis/connection.h"
#include "store/redis/script.h"
#include "store/testing/conformance.h"
#include "store/testing/server_process.h"

namespace hawser::store {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::unique_ptr<RedisStore> MustConnect(RedisStoreOptions options) {
  absl::StatusOr<std::unique_ptr<RedisStore>> store =
      RedisStore::Connect(std::move(options));
  EXPECT_THAT(store, IsOk());
  return store.ok() ? *std::move(store) : nullptr;
}

void MustRun(const internal::RedisProcess& redis,
             const std::vector<std::string>& command) {
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::seconds(20);
  const auto connection = internal::RedisConnection::Open(
      {.host = "127.0.0.1", .port = redis.port()}, deadline);
  ASSERT_THAT(connection, IsOk());
  EXPECT_THAT((*connection)->Call(command, deadline), IsOk());
}

class RedisUnderTest final : public StoreUnderTest {
 public:
  std::shared_ptr<Store> NewClient() override {
    return MustConnect({.port = redis_.port()});
  }

 private:
  const internal::RedisProcess redis_;
};

INSTANTIATE_TEST_SUITE_P(Redis, StoreConformanceTest,
                         testing::Values(ConformanceParam{
                             "Redis", [] {
                               return std::make_unique<RedisUnderTest>();
                             }}));

TEST(RedisStoreTest, PrefixesAndDatabasesAreSeparate) {
  const internal::RedisProcess redis;
  const auto store = MustConnect({.port = redis.port(), .prefix = "a"});
  const auto prefix = MustConnect({.port = redis.port(), .prefix = "b"});
  const auto database =
      MustConnect({.port = redis.port(), .database = 1, .prefix = "a"});
  EXPECT_THAT(store->Set("k", "v"), IsOk());
  EXPECT_THAT(prefix->NumKeys(), IsOkAndHolds(0));
  EXPECT_THAT(database->NumKeys(), IsOkAndHolds(0));
}

TEST(RedisStoreTest, LargeNumbersAreExact) {
  const internal::RedisProcess redis;
  const auto store = MustConnect({.port = redis.port()});
  EXPECT_THAT(store->Add("n", int64_t{9007199254740993}),
              IsOkAndHolds(int64_t{9007199254740993}));
}

TEST(RedisStoreTest, MissingOrWrongPasswordIsUnauthenticated) {
  const internal::RedisProcess redis({"--requirepass", "secret"});
  EXPECT_THAT(
      RedisStore::Connect({.port = redis.port()}),
      StatusIs(absl::StatusCode::kUnauthenticated, HasSubstr("NOAUTH")));
  EXPECT_THAT(
      RedisStore::Connect({.port = redis.port(), .password = "guess"}),
      StatusIs(absl::StatusCode::kUnauthenticated,
               AllOf(HasSubstr("WRONGPASS"), HasSubstr(redis.address()))));
  const auto store = MustConnect({.port = redis.port(), .password = "secret"});
  EXPECT_THAT(store->Set("k", "v"), IsOk());
  EXPECT_THAT(store->Get("k"), IsOkAndHolds("v"));
}

TEST(RedisStoreTest, WrongOptionsAreRefused) {
  const internal::RedisProcess redis;
  EXPECT_THAT(
      RedisStore::Connect({.port = redis.port(), .database = 9999}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("DB index")));
  EXPECT_THAT(RedisStore::Connect({.port = 0}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(RedisStore::Connect({.port = redis.port(), .prefix = ""}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(RedisStoreTest, UnreachableServerIsUnavailableNamingTheAddress) {
  EXPECT_THAT(
      RedisStore::Connect({.port = 1, .timeout = absl::Milliseconds(200)}),
      StatusIs(absl::StatusCode::kUnavailable,
               AllOf(HasSubstr("127.0.0.1:1"), HasSubstr("refused"))));
}

TEST(RedisStoreTest, FullMemoryIsResourceExhausted) {
  const internal::RedisProcess redis(
      {"--maxmemory", "3mb", "--maxmemory-policy", "noeviction"});
  const auto store = MustConnect({.port = redis.port()});
  absl::Status status;
  for (int i = 0; i < 20 && status.ok(); ++i) {
    status = store->Set(absl::StrCat("k", i), std::string(500000, 'x'));
  }
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted,
                               HasSubstr("maxmemory")));
}

TEST(RedisStoreTest, ValuesAboveTheLimitOfRedisAreRefusedAtOnce) {
  const internal::RedisProcess redis({"--proto-max-bulk-len", "1048576"});
  const auto store = MustConnect({.port = redis.port()});
  EXPECT_THAT(store->Set("k", std::string(3000000, 'x')),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("3000000"), HasSubstr("1048576"))));
  EXPECT_THAT(store->Set("k", std::string(1000000, 'x')), IsOk());
}

TEST(RedisStoreTest, AppendKeepsToTheLimit) {
  const internal::RedisProcess redis;
  const auto store =
      MustConnect({.port = redis.port(), .limits = {.max_value_bytes = 10}});
  EXPECT_THAT(store->Append("k", "12345678"), IsOkAndHolds(8));
  EXPECT_THAT(store->Append("k", "9ab"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("limit")));
  EXPECT_THAT(store->Get("k"), IsOkAndHolds("12345678"));
}

TEST(RedisStoreTest, ChangesWhoseRepliesWereLostAreAppliedOnce) {
  const internal::RedisProcess redis;
  net::TcpProxy proxy(redis.port());
  const auto direct = MustConnect({.port = redis.port()});
  const auto store = MustConnect({.port = proxy.port()});
  // The change is applied, but its reply and the connection are lost.
  const auto lose_reply = [&](const std::string& made, auto change) {
    proxy.Discard(net::TcpProxy::Direction::kToClient);
    std::thread changer(change);
    EXPECT_THAT(direct->Get(made, absl::Seconds(20)), IsOk());
    proxy.Reset();
    changer.join();
  };
  lose_reply("n", [&] { EXPECT_THAT(store->Add("n", 5), IsOkAndHolds(5)); });
  lose_reply("text", [&] {
    EXPECT_THAT(store->Append("text", "xy"), IsOkAndHolds(2));
  });
  lose_reply("won", [&] {
    const auto result = store->CompareAndSet("won", "", "me");
    ASSERT_THAT(result, IsOk());
    EXPECT_TRUE(result->swapped);
  });
  EXPECT_THAT(store->Get("n"), IsOkAndHolds("5"));
  EXPECT_THAT(store->Get("text"), IsOkAndHolds("xy"));
}

TEST(RedisStoreTest, AttemptsAfterALaterChangeAreIgnored) {
  const internal::RedisProcess redis;
  const auto run = [&](const char* operation, const char* sequence,
                       const char* key, const char* argument) {
    MustRun(redis,
            {"EVAL", internal::kRedisScript, "4", "data", "mark", "slot",
             "leases", "mine", operation, sequence, "channel:", key, argument});
  };
  run("begin", "", "mine", "");
  run("add", "9", "n", "1");
  run("add", "10", "n", "1");
  // Both are sent again; the first is outdated.
  run("add", "10", "n", "1");
  run("add", "9", "n", "1");
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::seconds(20);
  const auto connection = internal::RedisConnection::Open(
      {.host = "127.0.0.1", .port = redis.port()}, deadline);
  ASSERT_THAT(connection, IsOk());
  const std::string get[] = {"HGET", "data", "n"};
  const auto sum = (*connection)->Call(get, deadline);
  ASSERT_THAT(sum, IsOk());
  EXPECT_EQ(sum->text, "2");
}

TEST(RedisStoreTest, WaitingOutlivesALostConnection) {
  const internal::RedisProcess redis;
  net::TcpProxy proxy(redis.port());
  const auto store = MustConnect({.port = proxy.port()});
  const auto direct = MustConnect({.port = redis.port()});
  std::thread waiter([&] {
    EXPECT_THAT(store->Get("gate", absl::Seconds(60)), IsOkAndHolds("open"));
  });
  proxy.Reset();
  EXPECT_THAT(direct->Set("gate", "open"), IsOk());
  waiter.join();
}

TEST(RedisStoreTest, WatchOutlivesALostConnection) {
  const internal::RedisProcess redis;
  net::TcpProxy proxy(redis.port());
  const auto store = MustConnect({.port = proxy.port()});
  const auto direct = MustConnect({.port = redis.port()});
  const auto watch = store->WhenChanged({{"k", ""}});
  while (proxy.num_connections() < 2) std::this_thread::yield();
  proxy.SetServerPort(1);
  proxy.Reset();
  EXPECT_THAT(direct->Set("k", "v"), IsOk());
  proxy.SetServerPort(redis.port());
  EXPECT_THAT(watch.Wait(), IsOkAndHolds(testing::ElementsAre("v")));
}

TEST(RedisStoreTest, WatchOfLostDataFails) {
  const internal::RedisProcess redis;
  const auto store = MustConnect({.port = redis.port()});
  EXPECT_THAT(store->SetLease("k", "v", absl::Seconds(1)), IsOk());
  const auto watch = store->WhenChanged({{"k", "v"}});
  MustRun(redis, {"FLUSHALL"});
  EXPECT_THAT(watch.Wait(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("Redis store at"), HasSubstr("lost"))));
}

TEST(RedisStoreTest, DestructionEndsWatches) {
  const internal::RedisProcess redis;
  ExpectDestructionEndsWatches(MustConnect({.port = redis.port()}));
  net::TcpProxy proxy(redis.port());
  auto store = MustConnect({.port = proxy.port()});
  proxy.SetServerPort(1);
  proxy.Reset();
  ExpectDestructionEndsWatches(std::move(store));
}

// Any operation removes the keys whose leases have ended, not only a watch.
TEST(RedisStoreTest, LeasesEndWithoutWatches) {
  const internal::RedisProcess redis;
  const auto store = MustConnect({.port = redis.port()});
  EXPECT_THAT(store->SetLease("k", "v", absl::Milliseconds(100)), IsOk());
  while (*store->NumKeys() != 0) std::this_thread::yield();
  EXPECT_THAT(store->Add("k", 1), IsOkAndHolds(1));
}

TEST(RedisStoreTest, LostDataIsAnErrorRatherThanAnEmptyStore) {
  internal::RedisProcess redis;
  net::TcpProxy proxy(redis.port());
  const auto store = MustConnect({.port = proxy.port()});
  EXPECT_THAT(store->Set("k", "v"), IsOk());
  const auto lost =
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("lost"));
  MustRun(redis, {"FLUSHALL"});
  EXPECT_THAT(store->Get("k"), lost);
  EXPECT_THAT(store->Set("k", "v"), lost);
  redis.Restart();
  proxy.SetServerPort(redis.port());
  proxy.Reset();
  EXPECT_THAT(store->Get("k"), lost);
}

TEST(RedisStoreTest, ForgottenScriptsAreLoadedAgain) {
  const internal::RedisProcess redis;
  const auto store = MustConnect({.port = redis.port()});
  MustRun(redis, {"SCRIPT", "FLUSH"});
  EXPECT_THAT(store->Set("k", "v"), IsOk());
}

TEST(RedisStoreTest, DeadConnectionEndsCallsInTime) {
  const internal::RedisProcess redis;
  net::TcpProxy proxy(redis.port());
  const auto store = MustConnect({.port = proxy.port()});
  proxy.Discard(net::TcpProxy::Direction::kToClient);
  ExpectCallsEndInTime(*store);
  proxy.SetServerPort(1);
  proxy.Reset();
  ExpectCallsEndInTime(*store);
}

}  // namespace
}  // namespace hawser::store
