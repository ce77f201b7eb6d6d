#include "bazel/system/test/echo.grpc.pb.h"
#include "gtest/gtest.h"

TEST(GeneratedCodeTest, ServiceOfAnotherRepositoryLinks) {
  EXPECT_STREQ(hawser::build_test::Echo::service_full_name(),
               "hawser.build_test.Echo");
}
