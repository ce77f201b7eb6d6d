#include "rpc/functions/service_method.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/functions/method_definition.h"
#include "rpc/testing/method_test_service.pb.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::hawser::rpc_test::EchoReply;
using ::hawser::rpc_test::EchoRequest;
using ::testing::HasSubstr;

using EchoMethod = ServiceMethod<EchoRequest, EchoReply>;

constexpr EchoMethod kRead{"hawser.rpc_test.EchoService.Read"};
constexpr EchoMethod kOnce{"hawser.rpc_test.EchoService.Once"};
constexpr EchoMethod kUndeclared{"hawser.rpc_test.EchoService.Undeclared"};
constexpr EchoMethod kUnknown{"hawser.rpc_test.EchoService.Unknown"};

class ServiceMethodTest : public testing::Test {
 protected:
  // Links the generated code, and with it the definitions.
  void SetUp() override { ASSERT_NE(EchoRequest::descriptor(), nullptr); }
};

TEST_F(ServiceMethodTest, DefinitionIsThatOfTheProto) {
  static_assert(kRead.name() == "hawser.rpc_test.EchoService.Read");
  const absl::StatusOr<const MethodDefinition*> read = kRead.Resolve();
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ((*read)->name, "hawser.rpc_test.EchoService.Read");
  EXPECT_EQ((*read)->path, "/hawser.rpc_test.EchoService/Read");
  EXPECT_FALSE((*read)->at_most_once);
  const absl::StatusOr<const MethodDefinition*> once = kOnce.Resolve();
  ASSERT_THAT(once, IsOk());
  EXPECT_TRUE((*once)->at_most_once);
}

TEST_F(ServiceMethodTest, MethodsOfOneNameShareTheirDefinition) {
  static constexpr EchoMethod kSame{"hawser.rpc_test.EchoService.Read"};
  ASSERT_THAT(kRead.Resolve(), IsOk());
  EXPECT_EQ(*kRead.Resolve(), *kRead.Resolve());
  EXPECT_EQ(*kSame.Resolve(), *kRead.Resolve());
  EXPECT_EQ(*FindMethodDefinition(kRead.name()), *kRead.Resolve());
}

TEST_F(ServiceMethodTest, MethodsNeedADefinitionAndADeliveryClass) {
  EXPECT_THAT(kUndeclared.Resolve(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("delivery class")));
  EXPECT_THAT(kUnknown.Resolve(), StatusIs(absl::StatusCode::kInvalidArgument,
                                           HasSubstr("EchoService.Unknown")));
  // An error is not remembered as a success.
  EXPECT_THAT(kUnknown.Resolve(), StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace hawser::rpc
