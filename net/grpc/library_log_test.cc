#include "net/grpc/library_log.h"

#include <google/protobuf/wrappers.pb.h>
#include <grpc/support/log.h>

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "telemetry/log.h"
#include "telemetry/testing/recorded_log.h"

namespace hawser::net {
namespace {

using ::hawser::telemetry::LogSeverity;
using ::hawser::telemetry::RecordedLog;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class LibraryLogTest : public testing::Test {
 protected:
  LibraryLogTest() {
    gpr_set_log_verbosity(GPR_LOG_SEVERITY_ERROR);
    ForwardLibraryLogs();
  }

  const RecordedLog log_;
};

TEST_F(LibraryLogTest, OfEachSourceLineOneErrorAMinuteIsLogged) {
  const int line = __LINE__ + 2;
  for (int i = 0; i < 1000; ++i) {
    gpr_log(GPR_ERROR, "handshake %d failed", i);
  }
  gpr_log(GPR_ERROR, "another line");
  ASSERT_THAT(log_.entries(), SizeIs(2));
  const RecordedLog::Entry first = log_.entries()[0];
  EXPECT_EQ(first.severity, LogSeverity::kWarning);
  EXPECT_THAT(first.file, EndsWith("library_log_test.cc"));
  EXPECT_EQ(first.line, line);
  EXPECT_EQ(first.message, "gRPC: handshake 0 failed");
  EXPECT_EQ(log_.messages()[1], "gRPC: another line");
}

TEST_F(LibraryLogTest, InformationIsNotLimited) {
  gpr_set_log_verbosity(GPR_LOG_SEVERITY_INFO);
  for (int i = 0; i < 3; ++i) gpr_log(GPR_INFO, "subchannel %d", i);
  ASSERT_THAT(log_.entries(), SizeIs(3));
  EXPECT_EQ(log_.entries()[0].severity, LogSeverity::kInfo);
  EXPECT_EQ(log_.messages()[2], "gRPC: subchannel 2");
}

// A peer sends such strings as often as it likes.
TEST_F(LibraryLogTest, StringsThatAreNotUtf8AreLoggedOnceAMinute) {
  testing::internal::CaptureStderr();
  google::protobuf::StringValue value;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_FALSE(value.ParseFromString("\x0a\x02\xc3\x28"));
  }
  EXPECT_THAT(testing::internal::GetCapturedStderr(), IsEmpty());
  ASSERT_THAT(log_.entries(), SizeIs(1));
  EXPECT_EQ(log_.entries()[0].severity, LogSeverity::kWarning);
  EXPECT_THAT(log_.messages()[0],
              AllOf(HasSubstr("protobuf: "), HasSubstr("UTF-8")));
}

}  // namespace
}  // namespace hawser::net
