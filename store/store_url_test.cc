#include "store/store_url.h"

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::store {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

StoreUrl MustParse(const std::string& text) {
  const absl::StatusOr<StoreUrl> url = ParseStoreUrl(text);
  EXPECT_THAT(url, IsOk()) << text;
  return url.value_or(StoreUrl());
}

TEST(StoreUrlTest, EnvIsTheSchemeAlone) {
  EXPECT_EQ(MustParse("env://").scheme, StoreUrl::Scheme::kEnv);
  EXPECT_EQ(MustParse("env://?rank=3").rank, 3);
}

TEST(StoreUrlTest, TcpNamesAServer) {
  const StoreUrl url = MustParse("tcp://node7:1234?rank=0&world_size=2");
  EXPECT_EQ(url.scheme, StoreUrl::Scheme::kTcp);
  EXPECT_EQ(url.endpoint, (Endpoint{.host = "node7", .port = 1234}));
  EXPECT_EQ(url.rank, 0);
  EXPECT_EQ(url.world_size, 2);
  EXPECT_EQ(MustParse("tcp://h").endpoint.port, 29500);
  EXPECT_EQ(MustParse("tcp://h").rank, std::nullopt);
  EXPECT_EQ(MustParse("tcp://[::1]:80").endpoint,
            (Endpoint{.host = "::1", .port = 80}));
  EXPECT_EQ(MustParse("tcp://[::1]/").endpoint,
            (Endpoint{.host = "::1", .port = 29500}));
}

TEST(StoreUrlTest, FileHasAnAbsolutePath) {
  const StoreUrl url = MustParse("file:///mnt/a%20b/job?world_size=3");
  EXPECT_EQ(url.scheme, StoreUrl::Scheme::kFile);
  EXPECT_EQ(url.path, "/mnt/a b/job");
  EXPECT_EQ(url.world_size, 3);
}

TEST(StoreUrlTest, EtcdHasAPrefix) {
  const StoreUrl url = MustParse("etcd://h/jobs/17");
  EXPECT_EQ(url.scheme, StoreUrl::Scheme::kEtcd);
  EXPECT_EQ(url.endpoint, (Endpoint{.host = "h", .port = 2379}));
  EXPECT_EQ(url.prefix, "jobs/17");
  EXPECT_EQ(MustParse("etcd://h:1").prefix, "");
}

TEST(StoreUrlTest, RedisHasPasswordDatabaseAndPrefix) {
  const StoreUrl url = MustParse("redis://:p%40%2F@[::1]:7000/2/jobs/17");
  EXPECT_EQ(url.scheme, StoreUrl::Scheme::kRedis);
  EXPECT_EQ(url.username, "");
  EXPECT_EQ(url.password, "p@/");
  EXPECT_EQ(url.endpoint, (Endpoint{.host = "::1", .port = 7000}));
  EXPECT_EQ(url.database, 2);
  EXPECT_EQ(url.prefix, "jobs/17");
  EXPECT_EQ(MustParse("redis://me:secret@h").username, "me");
  EXPECT_EQ(MustParse("redis://h").endpoint.port, 6379);
}

TEST(StoreUrlTest, MalformedUrlsAreRejectedNamingThePart) {
  const struct {
    std::string url;
    std::string why;
  } kCases[] = {
      {"", "redis://"},
      {"localhost:29500", "redis://"},
      {"http://h", "redis://"},
      {"tcp:/h:1", "redis://"},
      {"tcp://", "host is missing"},
      {"tcp://h:65536", "65535"},
      {"tcp://h:x", "port"},
      {"tcp://h/path", "no path"},
      {"tcp://me:secret@h", "only redis"},
      {"env://h", "no host"},
      {"file://relative/path", "three slashes"},
      {"file:///", "path is missing"},
      {"file:///a%0", "hexadecimal"},
      {"file:///a%00b", "hexadecimal"},
      {"file:///a%zz", "hexadecimal"},
      {"redis://h/x/prefix", "database"},
      {"redis://h/-1", "database"},
      {"redis://me@h", "password"},
      {"tcp://h?rank=", "rank"},
      {"tcp://h?rank=-1", "rank"},
      {"tcp://h?world_size=0", "world_size"},
      {"tcp://h?world_size=1x", "world_size"},
      {"tcp://h?rank=1&rank=2", "twice"},
      {"tcp://h?colour=red", "colour"},
  };
  for (const auto& test : kCases) {
    EXPECT_THAT(
        ParseStoreUrl(test.url),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(test.why)))
        << test.url;
  }
}

TEST(StoreUrlTest, ErrorsDoNotContainThePassword) {
  EXPECT_THAT(ParseStoreUrl("redis://me:secret@h:1/x"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("redis://***@h:1/x"),
                             Not(HasSubstr("secret")))));
}

}  // namespace
}  // namespace hawser::store
