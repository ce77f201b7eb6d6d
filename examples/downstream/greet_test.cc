#include "gtest/gtest.h"
#include "proof/greeter.grpc.pb.h"
TEST(G, G) { EXPECT_NE(hawser::proof::Greeter::service_full_name(), nullptr); }
