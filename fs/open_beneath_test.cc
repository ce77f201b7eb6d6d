#include "fs/open_beneath.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::fs {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;

using Open = absl::StatusOr<int> (*)(int, const std::string&, int, mode_t);

// Runs with openat2(2) and without it.
class OpenBeneathTest : public testing::TestWithParam<Open> {
 protected:
  void SetUp() override {
    std::string base = testing::TempDir() + "/beneath.XXXXXX";
    ASSERT_NE(mkdtemp(base.data()), nullptr);
    base_ = base;
    std::filesystem::create_directories(base_ / "own/inner");
    Write(base_ / "secret", "outside");
    Write(base_ / "own/inner/file", "inside");
    directory_ = open((base_ / "own").c_str(), O_PATH | O_DIRECTORY);
    ASSERT_GE(directory_, 0);
  }
  void TearDown() override {
    close(directory_);
    std::filesystem::remove_all(base_);
  }

  static void Write(const std::filesystem::path& path, const char* text) {
    std::ofstream(path) << text;
  }

  // Opens a file and returns its content.
  absl::StatusOr<std::string> Read(const std::string& path) {
    const absl::StatusOr<int> fd = GetParam()(directory_, path, O_RDONLY, 0);
    if (!fd.ok()) return fd.status();
    char text[16] = {};
    EXPECT_GE(read(*fd, text, sizeof(text) - 1), 0);
    EXPECT_EQ(fcntl(*fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    close(*fd);
    return text;
  }

  std::filesystem::path base_;
  int directory_ = -1;
};

TEST_P(OpenBeneathTest, FilesBelowAreOpened) {
  EXPECT_THAT(Read("inner/file"), async::IsOkAndHolds("inside"));
  EXPECT_THAT(Read("inner/none"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("inner/none")));
}

TEST_P(OpenBeneathTest, FilesAreCreatedWithTheirMode) {
  const absl::StatusOr<int> fd =
      GetParam()(directory_, "made", O_WRONLY | O_CREAT | O_EXCL, 0600);
  ASSERT_THAT(fd, IsOk());
  close(*fd);
  EXPECT_EQ(
      std::filesystem::status(base_ / "own/made").permissions(),
      std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  EXPECT_THAT(GetParam()(directory_, "made", O_WRONLY | O_CREAT | O_EXCL, 0600),
              StatusIs(absl::StatusCode::kAlreadyExists));
}

TEST_P(OpenBeneathTest, PathsThatLeaveTheDirectoryAreRejected) {
  for (const std::string& path :
       {std::string("../secret"), std::string("inner/../../secret"),
        (base_ / "secret").string(), (base_ / "own/inner/file").string()}) {
    EXPECT_THAT(Read(path), StatusIs(absl::StatusCode::kInvalidArgument,
                                     HasSubstr("leads out")))
        << path;
  }
  EXPECT_THAT(Read(""), testing::Not(IsOk()));
}

TEST_P(OpenBeneathTest, LinksAreNotFollowed) {
  std::filesystem::create_symlink("../secret", base_ / "own/link");
  std::filesystem::create_symlink("inner/file", base_ / "own/harmless");
  std::filesystem::create_directory_symlink("..", base_ / "own/up");
  std::filesystem::create_directory_symlink("inner", base_ / "own/aside");
  for (const char* path : {"link", "harmless", "up/secret", "aside/file"}) {
    EXPECT_THAT(Read(path), StatusIs(absl::StatusCode::kInvalidArgument,
                                     HasSubstr("symbolic link")))
        << path;
  }
  // The target of a link is not written to either.
  EXPECT_THAT(
      GetParam()(directory_, "link", O_WRONLY | O_CREAT | O_TRUNC, 0600),
      StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(std::filesystem::file_size(base_ / "secret"), 7u);
}

std::string WayName(const testing::TestParamInfo<Open>& way) {
  return way.index == 0 ? "AtOnce" : "ByComponents";
}

INSTANTIATE_TEST_SUITE_P(Ways, OpenBeneathTest,
                         testing::Values(&OpenBeneath,
                                         &OpenBeneathByComponents),
                         WayName);

}  // namespace
}  // namespace hawser::fs
