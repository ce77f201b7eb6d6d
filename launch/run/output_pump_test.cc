#include "launch/run/output_pump.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launch/run/console.h"

namespace hawser::launch {
namespace {

using async::IsOk;
using ::testing::HasSubstr;

// The two files of a console.
class OutputPumpTest : public ::testing::Test {
 protected:
  OutputPumpTest()
      : output_(std::tmpfile()), error_(std::tmpfile()), console_(Options()) {}
  ~OutputPumpTest() override {
    std::fclose(output_);
    std::fclose(error_);
  }

  ConsoleOptions Options() const {
    return {.output_fd = fileno(output_), .error_fd = fileno(error_)};
  }

  // Adds a stream and returns the end that the process would have.
  int Add(OutputSource source) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    source.pipe = fs::UniqueFd(ends[0]);
    sources_.push_back(std::move(source));
    return ends[1];
  }

  void Start() {
    auto pump = OutputPump::Start(std::move(sources_), &console_);
    ASSERT_THAT(pump, IsOk());
    pump_ = *std::move(pump);
  }

  static std::string Content(std::FILE* file) {
    std::string text(1 << 20, '\0');
    const ssize_t got = pread(fileno(file), text.data(), text.size(), 0);
    text.resize(got > 0 ? static_cast<size_t>(got) : 0);
    return text;
  }

  static void Write(int fd, const std::string& text) {
    ASSERT_EQ(write(fd, text.data(), text.size()),
              static_cast<ssize_t>(text.size()));
  }

  std::FILE* const output_;
  std::FILE* const error_;
  Console console_;
  std::vector<OutputSource> sources_;
  std::unique_ptr<OutputPump> pump_;
};

TEST_F(OutputPumpTest, LinesOfProcessesAreWholeAndHaveTheirPrefix) {
  const int first = Add({.process = 0, .prefix = "rank 0"});
  const int second = Add({.process = 1, .prefix = "rank 1"});
  Start();
  Write(first, "half of ");
  Write(second, "whole\n");
  close(second);
  // The end of the second stream shows that the first part has been read or
  // comes later; either way the line is not complete.
  EXPECT_EQ(pump_->LastLines(1, absl::Seconds(30)), "whole\n");
  Write(first, "a line\nrest");
  close(first);
  pump_->Finish(absl::Seconds(30));
  EXPECT_EQ(Content(output_),
            "[rank 1] whole\n[rank 0] half of a line\n[rank 0] rest\n");
  EXPECT_EQ(Content(error_), "");
}

TEST_F(OutputPumpTest, StandardErrorStaysApart) {
  const int output = Add({.process = 0, .prefix = "a"});
  const int error =
      Add({.process = 0, .stream = OutputStream::kError, .prefix = "a"});
  Start();
  Write(output, "out\n");
  close(output);
  Write(error, "err\n");
  close(error);
  pump_->Finish(absl::Seconds(30));
  EXPECT_EQ(Content(output_), "[a] out\n");
  EXPECT_EQ(Content(error_), "[a] err\n");
  EXPECT_THAT(pump_->LastLines(0, absl::ZeroDuration()),
              testing::AnyOf("out\nerr\n", "err\nout\n"));
}

TEST_F(OutputPumpTest, FileGetsTheBytesAndTheConsoleOnlyWhatItShall) {
  const std::string path = testing::TempDir() + "/stdout.log";
  const int fd = open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
  const int process = Add({.process = 0,
                           .prefix = "a",
                           .to_console = false,
                           .file = fs::UniqueFd(fd),
                           .path = path});
  Start();
  Write(process, "one\ntwo");
  close(process);
  pump_->Finish(absl::Seconds(30));
  std::ostringstream content;
  content << std::ifstream(path).rdbuf();
  EXPECT_EQ(content.str(), "one\ntwo");
  EXPECT_EQ(Content(output_), "");
  EXPECT_EQ(pump_->LastLines(0, absl::ZeroDuration()), "one\ntwo\n");
}

TEST_F(OutputPumpTest, LastLinesAreFewAndShort) {
  const int process = Add({.process = 0, .prefix = "a"});
  Start();
  for (int i = 0; i < 30; ++i) Write(process, absl::StrCat("line ", i, "\n"));
  std::string line(10'000, 'x');
  line.push_back('\n');
  Write(process, line);
  close(process);
  const std::string last = pump_->LastLines(0, absl::Seconds(30));
  EXPECT_EQ(last.find("line 11\n"), 0u);
  EXPECT_EQ(last.size(), 19 * std::string("line 11\n").size() +
                             OutputPump::kMaxLastLineBytes + 1);
}

TEST_F(OutputPumpTest, EndlessLineIsDivided) {
  const int process = Add({.process = 0, .prefix = "a"});
  Start();
  const std::string half(OutputPump::kMaxLineBytes / 2, 'x');
  for (int i = 0; i < 3; ++i) Write(process, half);
  close(process);
  pump_->Finish(absl::Seconds(30));
  EXPECT_EQ(Content(output_),
            absl::StrCat("[a] ", half, half, "\n[a] ", half, "\n"));
}

TEST_F(OutputPumpTest, FullDiskEndsTheLogAndNotTheOutput) {
  const int full = open("/dev/full", O_WRONLY);
  const int process = Add({.process = 0,
                           .prefix = "a",
                           .file = fs::UniqueFd(full),
                           .path = "/dev/full"});
  Start();
  Write(process, "one\n");
  close(process);
  pump_->Finish(absl::Seconds(30));
  EXPECT_EQ(Content(output_), "[a] one\n");
  EXPECT_THAT(Content(error_), HasSubstr("the log /dev/full ends here: No"));
}

TEST_F(OutputPumpTest, PrefixHasAColourOfTheProcess) {
  ConsoleOptions options = Options();
  options.output_colours = true;
  Console console(options);
  console.PrintLine(OutputStream::kOutput, "a", 0, "x");
  console.PrintLine(OutputStream::kOutput, "b", 1, "y");
  console.PrintLine(OutputStream::kError, "a", 0, "z");
  EXPECT_EQ(Content(output_), "\x1b[36m[a]\x1b[0m x\n\x1b[33m[b]\x1b[0m y\n");
  EXPECT_EQ(Content(error_), "[a] z\n");
}

TEST_F(OutputPumpTest, DestructionDoesNotWaitForOpenStreams) {
  const int process = Add({.process = 0, .prefix = "a"});
  Start();
  pump_.reset();
  close(process);
}

}  // namespace
}  // namespace hawser::launch
