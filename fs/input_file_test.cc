#include "fs/input_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::fs {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;

std::string PathOf(const std::string& name) {
  return testing::TempDir() + "/input_file_test_" + name;
}

TEST(InputFileTest, ReadsByPosition) {
  const std::string path = PathOf("read");
  std::ofstream(path) << "0123456789";
  const auto file = InputFile::Open(path);
  ASSERT_THAT(file, IsOk());
  EXPECT_EQ(file->bytes(), 10u);
  std::string text(4, '\0');
  ASSERT_THAT(file->ReadAt(3, std::as_writable_bytes(std::span(text))), IsOk());
  EXPECT_EQ(text, "3456");
  EXPECT_THAT(file->ReadAt(100, {}), IsOk());
}

TEST(InputFileTest, FileThatBecameShorterIsDataLoss) {
  const std::string path = PathOf("short");
  std::ofstream(path) << "0123456789";
  const auto file = InputFile::Open(path);
  ASSERT_THAT(file, IsOk());
  ASSERT_EQ(truncate(path.c_str(), 5), 0);
  std::string text(10, '\0');
  EXPECT_THAT(file->ReadAt(0, std::as_writable_bytes(std::span(text))),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr(path + " ends at byte 5")));
}

TEST(InputFileTest, PipeIsRejectedWithoutBlocking) {
  EXPECT_THAT(InputFile::Open(PathOf("none")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("_none")));
  EXPECT_THAT(InputFile::Open(testing::TempDir()),
              StatusIs(absl::StatusCode::kInvalidArgument));
  const std::string pipe = PathOf("pipe");
  unlink(pipe.c_str());
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(InputFile::Open(pipe),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("not a regular file")));
}

}  // namespace
}  // namespace hawser::fs
