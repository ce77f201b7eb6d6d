// Servers and clients raise the limit on descriptors when they start.

#include <sys/resource.h>

#include "async/testing/status_matchers.h"
#include "gtest/gtest.h"
#include "rpc/grpc/transport.h"
#include "store/grpc/server.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;

class OpenFileLimitTest : public testing::Test {
 protected:
  void SetUp() override {
    rlimit low = Limit();
    ASSERT_GT(low.rlim_max, rlim_t{256});
    low.rlim_cur = 256;
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  }

  static rlimit Limit() {
    rlimit limit{};
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    return limit;
  }
};

TEST_F(OpenFileLimitTest, ATransportRaisesIt) {
  GrpcTransport transport;
  EXPECT_EQ(Limit().rlim_cur, Limit().rlim_max);
}

TEST_F(OpenFileLimitTest, AStoreServerRaisesIt) {
  auto server = store::StoreServer::Start({});
  ASSERT_THAT(server, IsOk());
  EXPECT_EQ(Limit().rlim_cur, Limit().rlim_max);
}

}  // namespace
}  // namespace hawser::rpc
