#include "fs/output_file.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::fs {
namespace {

using async::IsOk;
using async::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

absl::Status WriteText(const std::string& path) {
  std::ofstream file(path);
  file << "text";
  file.close();
  return file.good() ? absl::OkStatus()
                     : absl::NotFoundError("cannot write " + path);
}

class OutputFileTest : public ::testing::Test {
 protected:
  OutputFileTest() {
    std::string name = ::testing::TempDir() + "/output_file_XXXXXX";
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
    setenv("TMPDIR", name.c_str(), 1);
  }
  ~OutputFileTest() override { std::filesystem::remove_all(directory_); }

  int NumEntries() const {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
      (void)entry;
      ++count;
    }
    return count;
  }

  OutputFile File(const std::string& name) const {
    return OutputFile("save", directory_ + name, "the text");
  }

  std::string directory_;
};

TEST_F(OutputFileTest, CheckLeavesNoFile) {
  EXPECT_THAT(File("/model").Check(), IsOk());
  EXPECT_THAT(OutputFile("save", "", "the text").Check(), IsOk());
  EXPECT_EQ(NumEntries(), 0);
}

TEST_F(OutputFileTest, CheckNamesPathsThatCannotBeWritten) {
  EXPECT_THAT(File("").Check(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("--save=" + directory_),
                             HasSubstr("is a directory"))));
  EXPECT_THAT(
      File("/none/model").Check(),
      StatusIs(absl::StatusCode::kNotFound,
               HasSubstr("cannot create a file in " + directory_ + "/none")));
}

TEST_F(OutputFileTest, ContentIsWrittenToThePath) {
  EXPECT_THAT(File("/model").Write(WriteText), IsOk());
  EXPECT_TRUE(std::filesystem::exists(directory_ + "/model"));
  EXPECT_THAT(OutputFile("save", "", "the text").Write(WriteText), IsOk());
  EXPECT_EQ(NumEntries(), 1);
}

TEST_F(OutputFileTest, ContentIsKeptElsewhereIfThePathCannotBeWritten) {
  const absl::Status status = File("/none/model").Write(WriteText);
  const std::string message(status.message());
  ASSERT_THAT(status, StatusIs(absl::StatusCode::kNotFound,
                               AllOf(HasSubstr("--save=" + directory_ +
                                               "/none/model: cannot write"),
                                     HasSubstr("; the text is in "))));
  const size_t begin = message.find("the text is in ") + 15;
  const std::string path =
      message.substr(begin, message.find(" instead") - begin);
  EXPECT_THAT(path, AllOf(HasSubstr(directory_ + "/hawser."),
                          ::testing::EndsWith("/model")));
  EXPECT_EQ(std::filesystem::file_size(path), 4u);
}

TEST_F(OutputFileTest, LossOfTheContentIsReported) {
  setenv("TMPDIR", (directory_ + "/none").c_str(), 1);
  EXPECT_THAT(
      File("/none/model").Write(WriteText),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr("the text is lost")));
}

}  // namespace
}  // namespace hawser::fs
