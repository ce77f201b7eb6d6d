#include "data/idx_dataset.h"

#include <cstdint>
#include <fstream>

#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::data {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

std::string Write(const std::string& name, const std::string& bytes) {
  std::string path = testing::TempDir() + "/" + name;
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

std::string Images() {
  return Write("images.idx", std::string("\0\0\x08\x03\0\0\0\x03\0\0\0\x01\0"
                                         "\0\0\x02"
                                         "abcdef",
                                         22));
}
std::string Labels() {
  return Write("labels.idx",
               std::string("\0\0\x08\x01\0\0\0\x03\x07\x08\x09", 11));
}

TEST(IdxDatasetTest, ABatchHasTheElementsOfEachFile) {
  const auto dataset = ReadIdxDataset({Images(), Labels()});
  ASSERT_THAT(dataset, IsOk());
  EXPECT_EQ((*dataset)->count(), 3);
  const auto batch = (*dataset)->Fetch(std::vector<int64_t>{2, 0});
  ASSERT_THAT(batch, IsOk());
  EXPECT_EQ((*batch)[0].shape(), tensor::Shape({2, 1, 2}));
  EXPECT_THAT((*batch)[0].ToVector<uint8_t>(), ElementsAre('e', 'f', 'a', 'b'));
  EXPECT_THAT((*batch)[1].ToVector<uint8_t>(), ElementsAre(9, 7));
}

TEST(IdxDatasetTest, BadFilesAreNamed) {
  const std::string two =
      Write("two.idx", std::string("\0\0\x08\x01\0\0\0\x02\x07\x08", 10));
  EXPECT_THAT(ReadIdxDataset({Images(), two}),
              StatusIs(kInvalid, AllOf(HasSubstr("two.idx has 2 samples"),
                                       HasSubstr("images.idx has 3"))));
  const std::string cut =
      Write("cut.idx", std::string("\0\0\x08\x01\0\0\0\x02\x07", 9));
  EXPECT_THAT(ReadIdxDataset({cut}),
              StatusIs(kInvalid, HasSubstr("cut.idx: truncated")));
  EXPECT_THAT(ReadIdxDataset({Images(), cut + ".none"}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(".none")));
  EXPECT_THAT(ReadIdxDataset({}), StatusIs(kInvalid));
}

}  // namespace
}  // namespace hawser::data
