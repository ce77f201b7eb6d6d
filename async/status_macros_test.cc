#include "async/status_macros.h"

#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::async {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pointee;

absl::StatusOr<int> Half(int n) {
  if (n % 2 != 0) return absl::InvalidArgumentError("odd");
  return n / 2;
}

absl::Status CheckEven(int n) {
  RETURN_IF_ERROR(Half(n));
  RETURN_IF_ERROR(Half(n).status());
  return absl::OkStatus();
}

absl::StatusOr<int> Quarter(int n) {
  ASSIGN_OR_RETURN(const int half, Half(n));
  int quarter = 0;
  ASSIGN_OR_RETURN(quarter, Half(half));
  return quarter;
}

absl::StatusOr<std::unique_ptr<int>> Boxed(int n) {
  ASSIGN_OR_RETURN(auto half, Half(n));
  return std::make_unique<int>(half);
}

absl::StatusOr<std::map<int, int>> HalfMap(int n) {
  ASSIGN_OR_RETURN((std::map<int, int> map),
                   [&]() -> absl::StatusOr<std::map<int, int>> {
                     ASSIGN_OR_RETURN(int half, Half(n));
                     return std::map<int, int>{{n, half}};
                   }());
  return map;
}

TEST(StatusMacrosTest, ErrorReturnsAndValueIsAssigned) {
  EXPECT_THAT(CheckEven(4), IsOk());
  EXPECT_THAT(CheckEven(3), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Quarter(12), IsOkAndHolds(3));
  EXPECT_THAT(Quarter(6), StatusIs(absl::StatusCode::kInvalidArgument, "odd"));
}

TEST(StatusMacrosTest, MoveOnlyAndParenthesised) {
  EXPECT_THAT(Boxed(2), IsOkAndHolds(Pointee(1)));
  EXPECT_THAT(HalfMap(8), IsOkAndHolds(testing::Contains(testing::Key(8))));
  EXPECT_THAT(HalfMap(7), Not(IsOk()));
}

TEST(StatusMatchersTest, DescribeTheStatusFound) {
  testing::StringMatchResultListener listener;
  const absl::Status status = absl::AbortedError("gone");
  EXPECT_FALSE(testing::ExplainMatchResult(
      StatusIs(absl::StatusCode::kAborted, "other"), status, &listener));
  EXPECT_THAT(listener.str(), HasSubstr("gone"));
  EXPECT_THAT(absl::StatusOr<int>(status), Not(IsOkAndHolds(1)));
}

}  // namespace
}  // namespace hawser::async
