#include "data/mnist.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::data {
namespace {

using async::IsOk;
using async::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

// Creates a directory for a test.
std::string MakeDirectory() {
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  const fs::path path = fs::path(::testing::TempDir()) / test->name();
  fs::remove_all(path);
  fs::create_directories(path);
  return path.string();
}

// Writes `count` images of 1 x 1 pixel whose grey value is their index, and
// labels that cycle from `first_label`.
void WritePair(const std::string& directory, const std::string& prefix,
               int count, int first_label) {
  std::string images{"\0\0\x08\x03\0\0\0", 7};
  images += static_cast<char>(count);
  images += std::string{"\0\0\0\x01\0\0\0\x01", 8};
  std::string labels{"\0\0\x08\x01\0\0\0", 7};
  labels += static_cast<char>(count);
  for (int i = 0; i < count; ++i) {
    images += static_cast<char>(i);
    labels += static_cast<char>((first_label + i) % 10);
  }
  const fs::path base = directory;
  std::ofstream(base / (prefix + "-images-idx3-ubyte"), std::ios::binary)
      << images;
  std::ofstream(base / (prefix + "-labels-idx1-ubyte"), std::ios::binary)
      << labels;
}

TEST(MnistTest, WithoutHoldoutTrainAndTestFilesAreUsed) {
  const std::string directory = MakeDirectory();
  WritePair(directory, "train", 5, 0);
  WritePair(directory, "t10k", 3, 7);
  auto split = LoadMnist(directory, 0);
  ASSERT_THAT(split, IsOk());
  EXPECT_THAT(split->train.labels.ToVector<int64_t>(),
              ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(split->test.labels.ToVector<int64_t>(), ElementsAre(7, 8, 9));
}

TEST(MnistTest, HoldoutKeepsTheLastTrainingSamples) {
  const std::string directory = MakeDirectory();
  WritePair(directory, "train", 5, 0);
  auto split = LoadMnist(directory, 2);
  ASSERT_THAT(split, IsOk());
  EXPECT_THAT(split->train.labels.ToVector<int64_t>(), ElementsAre(0, 1, 2));
  EXPECT_THAT(split->test.labels.ToVector<int64_t>(), ElementsAre(3, 4));
}

TEST(MnistTest, T10kFilesAloneNeedAHoldout) {
  const std::string directory = MakeDirectory();
  WritePair(directory, "t10k", 4, 0);
  EXPECT_THAT(LoadMnist(directory, 0),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("only the t10k files")));
  auto split = LoadMnist(directory, 1);
  ASSERT_THAT(split, IsOk());
  EXPECT_EQ(split->train.count(), 3);
}

TEST(MnistTest, MissingFilesAreNamed) {
  const std::string directory = MakeDirectory();
  EXPECT_THAT(LoadMnist(directory, 0),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("train-images-idx3-ubyte")));
  WritePair(directory, "train", 2, 0);
  fs::remove(fs::path(directory) / "train-labels-idx1-ubyte");
  EXPECT_THAT(LoadMnist(directory, 0),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("train-labels-idx1-ubyte")));
  EXPECT_THAT(LoadMnist(directory + "/absent", 0),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/absent")));
}

TEST(MnistTest, ImagesAndLabelsMustMatch) {
  const std::string directory = MakeDirectory();
  WritePair(directory, "train", 5, 0);
  WritePair(directory, "t10k", 3, 0);
  fs::copy_file(fs::path(directory) / "t10k-labels-idx1-ubyte",
                fs::path(directory) / "train-labels-idx1-ubyte",
                fs::copy_options::overwrite_existing);
  EXPECT_THAT(LoadMnist(directory, 0),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("train-images"),
                             HasSubstr("labels must be i64 [5]"))));
}

TEST(MnistTest, HoldoutMustLeaveSamplesOnBothSides) {
  const std::string directory = MakeDirectory();
  WritePair(directory, "train", 5, 0);
  for (const int64_t holdout : {-1, 5, 6}) {
    EXPECT_THAT(LoadMnist(directory, holdout),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("of 5 samples")));
  }
}

}  // namespace
}  // namespace hawser::data
