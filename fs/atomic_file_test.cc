#include "fs/atomic_file.h"

#include <dirent.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::fs {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A new directory per test.
class AtomicFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string path = testing::TempDir() + "/atomic_file_test.XXXXXX";
    ASSERT_NE(mkdtemp(path.data()), nullptr);
    folder_ = path;
  }

  std::string PathOf(const std::string& name) { return folder_ + "/" + name; }

  std::vector<std::string> Files() {
    std::vector<std::string> files;
    DIR* const folder = opendir(folder_.c_str());
    while (const dirent* entry = readdir(folder)) {
      if (entry->d_name[0] != '.') files.push_back(entry->d_name);
    }
    closedir(folder);
    return files;
  }

  static std::string Contents(const std::string& path) {
    std::ostringstream out;
    out << std::ifstream(path).rdbuf();
    return out.str();
  }

  static std::span<const std::byte> Bytes(const std::string& text) {
    return std::as_bytes(std::span(text));
  }

  std::string folder_;
};

TEST_F(AtomicFileTest, AppearsWhenCommitted) {
  auto file = AtomicFile::Create(PathOf("a"));
  ASSERT_THAT(file, IsOk());
  ASSERT_THAT(file->Append(Bytes("one ")), IsOk());
  ASSERT_THAT(file->Append({}), IsOk());
  AtomicFile moved = *std::move(file);
  ASSERT_THAT(moved.Append(Bytes("two")), IsOk());
  EXPECT_NE(access(PathOf("a").c_str(), F_OK), 0);
  ASSERT_THAT(moved.Commit(), IsOk());
  EXPECT_EQ(Contents(PathOf("a")), "one two");
  EXPECT_THAT(Files(), ElementsAre("a"));
  struct stat status;
  ASSERT_EQ(stat(PathOf("a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777u, 0600u);
}

TEST_F(AtomicFileTest, OldFileStaysUntilCommitted) {
  std::ofstream(PathOf("a")) << "old";
  {
    auto file = AtomicFile::Create(PathOf("a"));
    ASSERT_THAT(file, IsOk());
    ASSERT_THAT(file->Append(Bytes("new")), IsOk());
  }
  EXPECT_EQ(Contents(PathOf("a")), "old");
  EXPECT_THAT(Files(), ElementsAre("a"));
}

TEST_F(AtomicFileTest, ErrorsNameTheFileAndTheCause) {
  EXPECT_THAT(AtomicFile::Create(PathOf("none/a")),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr(PathOf("none/a")),
                             HasSubstr("No such file or directory"))));
  // A directory has this name.
  ASSERT_EQ(mkdir(PathOf("folder").c_str(), 0700), 0);
  auto file = AtomicFile::Create(PathOf("folder"));
  ASSERT_THAT(file, IsOk());
  const absl::Status status = file->Commit();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr(PathOf("folder")), HasSubstr("rename failed")));
}

// A file size limit simulates a full disk: write() fails midway.
TEST_F(AtomicFileTest, FailedWriteKeepsTheOldFile) {
  std::ofstream(PathOf("a")) << "old";
  signal(SIGXFSZ, SIG_IGN);
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit limit = before;
  limit.rlim_cur = 10000;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  {
    auto file = AtomicFile::Create(PathOf("a"));
    ASSERT_THAT(file, IsOk());
    const absl::Status status = file->Append(Bytes(std::string(20000, 'x')));
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(PathOf("a")), HasSubstr("write failed"),
                      HasSubstr("File too large")));
  }
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(Contents(PathOf("a")), "old");
  EXPECT_THAT(Files(), ElementsAre("a"));
}

TEST_F(AtomicFileTest, RelativePathsWork) {
  ASSERT_EQ(chdir(folder_.c_str()), 0);
  auto file = AtomicFile::Create("plain");
  ASSERT_THAT(file, IsOk());
  ASSERT_THAT(file->Commit(), IsOk());
  EXPECT_THAT(Contents("plain"), IsEmpty());
}

}  // namespace
}  // namespace hawser::fs
