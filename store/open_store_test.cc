#include "store/open_store.h"

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "net/testing/test_credentials.h"
#include "store/grpc/server.h"
#include "store/testing/server_process.h"

namespace hawser::store {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;

// Two clients of one URL see each other.
void ExpectShared(const std::string& url, const std::string& description) {
  const auto one = OpenStore(url);
  const auto other = OpenStore(url);
  ASSERT_THAT(one, IsOk());
  ASSERT_THAT(other, IsOk());
  EXPECT_THAT((*one)->Set("k", "v"), IsOk());
  EXPECT_THAT((*other)->Get("k"), IsOkAndHolds("v"));
  EXPECT_THAT((*one)->description(), HasSubstr(description));
}

std::unique_ptr<StoreServer> MustStart(StoreServerOptions options = {}) {
  absl::StatusOr<std::unique_ptr<StoreServer>> server =
      StoreServer::Start(std::move(options));
  EXPECT_THAT(server, IsOk());
  return server.ok() ? *std::move(server) : nullptr;
}

TEST(OpenStoreTest, TcpIsTheGrpcStore) {
  const auto server = MustStart();
  ExpectShared(absl::StrCat("tcp://", server->address()), "gRPC store");
}

TEST(OpenStoreTest, TcpOverIpV6) {
  const auto server = StoreServer::Start({.host = "::1"});
  if (absl::IsInvalidArgument(server.status()) ||
      absl::IsUnavailable(server.status())) {
    GTEST_SKIP() << "this machine has no IPv6 loopback: " << server.status();
  }
  ASSERT_THAT(server, IsOk());
  EXPECT_THAT((*server)->address(), HasSubstr("[::1]:"));
  ExpectShared(absl::StrCat("tcp://", (*server)->address()), "[::1]");
}

TEST(OpenStoreTest, EnvReadsTheEnvironment) {
  unsetenv("MASTER_ADDR");
  EXPECT_THAT(OpenStore("env://"), StatusIs(absl::StatusCode::kInvalidArgument,
                                            HasSubstr("MASTER_ADDR")));
  const auto server = MustStart();
  setenv("MASTER_ADDR", "127.0.0.1", 1);
  setenv("MASTER_PORT", absl::StrCat(server->port()).c_str(), 1);
  ExpectShared("env://", server->address());
}

TEST(OpenStoreTest, TcpTakesCredentials) {
  net::TestAuthority authority;
  const auto server = MustStart({.credentials = authority.Make("keeper")});
  const std::string url = absl::StrCat("tcp://", server->address());
  EXPECT_THAT(OpenStore(url, {.credentials = authority.Make("w1")}), IsOk());
  net::TestAuthority other;
  EXPECT_THAT(OpenStore(url, {.credentials = other.Make("w1")}),
              StatusIs(absl::StatusCode::kUnauthenticated));
}

TEST(OpenStoreTest, FileIsDeletedByTheLastOfItsMembers) {
  const std::string path = testing::TempDir() + "/open_store_file";
  ExpectShared(absl::StrCat("file://", path, "?world_size=2"), "file store");
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(OpenStoreTest, EtcdKeepsItsPrefix) {
  const internal::EtcdProcess etcd;
  ExpectShared(absl::StrCat("etcd://", etcd.address(), "/jobs/17"), "jobs/17");
}

TEST(OpenStoreTest, RedisTakesPasswordDatabaseAndPrefix) {
  const internal::RedisProcess redis({"--requirepass", "p@ss"});
  ExpectShared(absl::StrCat("redis://:p%40ss@", redis.address(), "/3/jobs/17"),
               "/3/jobs/17");
}

TEST(OpenStoreTest, WrongUrlsAndAbsentServersAreErrors) {
  EXPECT_THAT(OpenStore("ftp://h"),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(
      OpenStore("tcp://127.0.0.1:1", {.timeout = absl::Milliseconds(100)}),
      StatusIs(absl::StatusCode::kUnavailable));
}

}  // namespace
}  // namespace hawser::store
