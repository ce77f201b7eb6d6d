#include "telemetry/log.h"

#include <atomic>
#include <cstdlib>
#include <optional>
#include <thread>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "telemetry/testing/recorded_log.h"

namespace hawser::telemetry {
namespace {

using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(LogTest, SinkReceivesSeverityTimeSourceAndText) {
  const absl::Time before = absl::Now();
  testing::internal::CaptureStderr();
  const RecordedLog log;
  const int line = __LINE__ + 1;
  Log(LogSeverity::kWarning, "the disk is full");
  EXPECT_THAT(testing::internal::GetCapturedStderr(), IsEmpty());
  ASSERT_THAT(log.entries(), SizeIs(1));
  const RecordedLog::Entry entry = log.entries()[0];
  EXPECT_EQ(entry.severity, LogSeverity::kWarning);
  EXPECT_GE(entry.time, before);
  EXPECT_LE(entry.time, absl::Now());
  EXPECT_THAT(entry.file, EndsWith("telemetry/log_test.cc"));
  EXPECT_EQ(entry.line, line);
  EXPECT_EQ(entry.message, "the disk is full");
}

TEST(LogTest, WithoutASinkLinesGoToStderr) {
  { const RecordedLog log; }
  testing::internal::CaptureStderr();
  Log(LogSeverity::kInfo, "waits");
  Log(LogSeverity::kError, "no \x1b[2J\nline\x7f \xc3\xa9");
  EXPECT_THAT(
      testing::internal::GetCapturedStderr(),
      ContainsRegex("^I[0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{6} [0-9]+ "
                    "log_test\\.cc:[0-9]+\\] hawser: waits\n"
                    "E[0-9. :]+ log_test\\.cc:[0-9]+\\] hawser: "
                    "no \\\\x1b\\[2J\\\\x0aline\\\\x7f \xc3\xa9\n$"));
}

TEST(LogTest, EntriesBelowTheLevelAreDropped) {
  const RecordedLog log;
  SetMinLogSeverity(LogSeverity::kWarning);
  Log(LogSeverity::kInfo, "a");
  Log(LogSeverity::kWarning, "b");
  SetMinLogSeverity(LogSeverity::kError);
  Log(LogSeverity::kWarning, "c");
  Log(LogSeverity::kError, "d");
  SetMinLogSeverity(LogSeverity::kInfo);
  EXPECT_THAT(log.messages(), ElementsAre("b", "d"));
}

// In processes of their own, since the environment is read once.
[[noreturn]] void LogAt(const char* level) {
  setenv("HAWSER_LOG_LEVEL", level, 1);
  Log(LogSeverity::kInfo, "a");
  Log(LogSeverity::kWarning, "b");
  Log(LogSeverity::kError, "c");
  std::exit(0);
}

TEST(LogDeathTest, EnvironmentSetsTheLevel) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(LogAt("warning"), testing::ExitedWithCode(0),
              "^W[^\n]* b\nE[^\n]* c\n$");
  EXPECT_EXIT(LogAt("error"), testing::ExitedWithCode(0), "^E[^\n]* c\n$");
  EXPECT_EXIT(LogAt("info"), testing::ExitedWithCode(0), "^I[^\n]* a\nW.*");
}

TEST(LogDeathTest, WrongLevelIsNamed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(LogAt("loud"), testing::ExitedWithCode(0),
              "^W[^\n]*HAWSER_LOG_LEVEL is 'loud'[^\n]*\nI[^\n]* a\nW.*");
}

TEST(LogTest, SinkMayBeReplacedWhileThreadsLog) {
  constexpr size_t kEntries = 1000;
  std::optional<RecordedLog> first(std::in_place);
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    while (!stop) Log(LogSeverity::kInfo, "x");
  });
  while (first->entries().size() < kEntries) std::this_thread::yield();
  const RecordedLog second;
  while (second.entries().size() < kEntries) std::this_thread::yield();
  stop = true;
  writer.join();
}

}  // namespace
}  // namespace hawser::telemetry
