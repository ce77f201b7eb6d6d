#include "async/exceptions.h"

#include <memory>
#include <stdexcept>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "telemetry/testing/recorded_log.h"

namespace hawser::async {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(ExceptionsTest, ExceptionIsInternalAndNamesItsSource) {
  EXPECT_THAT(CatchExceptions<absl::StatusOr<int>>("it", [] { return 3; }),
              IsOkAndHolds(3));
  EXPECT_THAT(CatchExceptions<absl::Status>(
                  "it", [] { return absl::NotFoundError("none"); }),
              StatusIs(absl::StatusCode::kNotFound, "none"));
  EXPECT_THAT(
      CatchExceptions<absl::StatusOr<int>>(
          "function 'f'",
          []() -> int { throw std::out_of_range("no such row"); }),
      StatusIs(absl::StatusCode::kInternal, "function 'f' threw no such row"));
  EXPECT_THAT(
      CatchExceptions<absl::Status>("it", []() -> absl::Status { throw 3; }),
      StatusIs(absl::StatusCode::kInternal, HasSubstr("not a std::exception")));
}

TEST(ExceptionsTest, MoveOnlyResultsPass) {
  auto made = CatchExceptions<absl::StatusOr<std::unique_ptr<int>>>(
      "it", [] { return std::make_unique<int>(4); });
  EXPECT_THAT(made, IsOkAndHolds(testing::Pointee(4)));
}

TEST(ExceptionsTest, ExceptionWithoutACallerIsLoggedOnceAMinute) {
  const telemetry::RecordedLog log;
  LogExceptions("a callback", [] { throw std::out_of_range("no such row"); });
  for (int i = 0; i < 100; ++i) LogExceptions("a callback", [] { throw 3; });
  EXPECT_THAT(log.messages(),
              ElementsAre(StartsWith("a callback threw no such row, and")));
}

}  // namespace
}  // namespace hawser::async
