#include "examples/mnist_ps/saved_model.h"

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "async/testing/status_matchers.h"
#include "examples/mnist_ps/model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::examples::mnist_ps {
namespace {

using async::IsOk;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class SavedModelTest : public ::testing::Test {
 protected:
  SavedModelTest() {
    std::string name = ::testing::TempDir() + "/saved_model_XXXXXX";
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
    setenv("TMPDIR", name.c_str(), 1);
    parameters_ = *InitialParameters(Options());
  }
  ~SavedModelTest() override { std::filesystem::remove_all(directory_); }

  int NumEntries() const {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
      (void)entry;
      ++count;
    }
    return count;
  }

  std::string directory_;
  std::vector<Tensor> parameters_;
};

TEST_F(SavedModelTest, CheckLeavesNoFile) {
  EXPECT_THAT(CheckSavePath(directory_ + "/model"), IsOk());
  EXPECT_THAT(CheckSavePath(""), IsOk());
  EXPECT_EQ(NumEntries(), 0);
}

TEST_F(SavedModelTest, CheckNamesPathsThatCannotBeWritten) {
  EXPECT_THAT(
      std::string(CheckSavePath(directory_).message()),
      AllOf(HasSubstr("--save=" + directory_), HasSubstr("is a directory")));
  const absl::Status missing = CheckSavePath(directory_ + "/none/model");
  EXPECT_THAT(std::string(missing.message()),
              HasSubstr("cannot create a file in " + directory_ + "/none"));
}

TEST_F(SavedModelTest, ModelIsWrittenToItsPath) {
  EXPECT_THAT(SaveModel(directory_ + "/model", parameters_), IsOk());
  EXPECT_TRUE(std::filesystem::exists(directory_ + "/model"));
  EXPECT_EQ(NumEntries(), 1);
  EXPECT_THAT(SaveModel("", parameters_), IsOk());
  EXPECT_EQ(NumEntries(), 1);
}

TEST_F(SavedModelTest, ModelIsKeptElsewhereIfItsPathCannotBeWritten) {
  const absl::Status status =
      SaveModel(directory_ + "/none/model", parameters_);
  ASSERT_THAT(status, Not(IsOk()));
  const std::string message(status.message());
  ASSERT_THAT(message,
              AllOf(HasSubstr("--save=" + directory_ + "/none/model"),
                    HasSubstr("the model is in "), HasSubstr(" instead")));
  const size_t begin = message.find("the model is in ") + 16;
  const std::string path =
      message.substr(begin, message.find(" instead") - begin);
  EXPECT_THAT(path, HasSubstr(directory_ + "/mnist_ps."));
  Options from_file;
  from_file.init_path = path;
  EXPECT_THAT(InitialParameters(from_file), IsOk());
}

TEST_F(SavedModelTest, LossOfTheModelIsReported) {
  setenv("TMPDIR", (directory_ + "/none").c_str(), 1);
  EXPECT_THAT(
      std::string(SaveModel(directory_ + "/none/model", parameters_).message()),
      HasSubstr("the model is lost"));
}

}  // namespace
}  // namespace hawser::examples::mnist_ps
