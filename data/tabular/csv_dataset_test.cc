#include "data/tabular/csv_dataset.h"

#include <cstdint>

#include "async/testing/status_matchers.h"
#include "data/tabular/testing/text_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::data {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<std::shared_ptr<const TensorDataset>> Read(
    std::string_view text, const std::vector<CsvColumns>& tensors) {
  return ReadCsvDataset(WriteTextFile("houses.csv", text), tensors);
}

auto Refused(const char* error) {
  return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(error));
}

TEST(CsvDatasetTest, ColumnsAreFoundByName) {
  const auto dataset =
      Read("name,area,class,rooms\n\"A, B\",50.5,-3,2\n\nC,80,9000000001,4\n",
           {{{"rooms", "area"}}, {{"class"}, tensor::DType::kI64}});
  ASSERT_THAT(dataset, IsOk());
  EXPECT_EQ((*dataset)->count(), 2);
  const auto batch = (*dataset)->Fetch(std::vector<int64_t>{1, 0});
  ASSERT_THAT(batch, IsOk());
  ASSERT_EQ(batch->size(), 2u);
  EXPECT_EQ((*batch)[0].shape(), tensor::Shape({2, 2}));
  EXPECT_THAT((*batch)[0].ToVector<float>(), ElementsAre(4, 80, 2, 50.5));
  EXPECT_EQ((*batch)[1].shape(), tensor::Shape({2, 1}));
  EXPECT_THAT((*batch)[1].ToVector<int64_t>(), ElementsAre(9000000001, -3));
}

TEST(CsvDatasetTest, AFileOfAHeaderHasNoSamples) {
  const auto dataset = Read("a,b\n", {{{"b"}}});
  ASSERT_THAT(dataset, IsOk());
  EXPECT_EQ((*dataset)->count(), 0);
}

TEST(CsvDatasetTest, BadFieldsAreNamedByLineAndColumn) {
  EXPECT_THAT(Read("a,b\n1,2\n3,x\n", {{{"b"}}}),
              Refused("houses.csv:3: column 2 (\"b\"): \"x\" is not a number"));
  EXPECT_THAT(Read("a,b\n1,\n", {{{"b"}}}),
              Refused("houses.csv:2: column 2 (\"b\"): \"\" is not a number"));
  EXPECT_THAT(
      Read("a\n1.5\n", {{{"a"}, tensor::DType::kI64}}),
      Refused("houses.csv:2: column 1 (\"a\"): \"1.5\" is not a whole"));
  EXPECT_THAT(Read("a,b\n1,2\n3\n", {{{"a"}}}),
              Refused("houses.csv:3: the line has 1 fields"));
}

TEST(CsvDatasetTest, BadColumnsAreRefused) {
  EXPECT_THAT(Read("a,b\n1,2\n", {{{"a", "c"}}}),
              Refused("houses.csv: the header has no column \"c\""));
  EXPECT_THAT(Read("a\n1\n", {{{"a"}, tensor::DType::kF64}}),
              Refused("read as f32 or i64, not as f64"));
  EXPECT_THAT(Read("a\n1\n", {CsvColumns{}}),
              Refused("a tensor needs at least one column"));
  EXPECT_THAT(Read("a\n1\n", {}), Refused("at least one column"));
  EXPECT_THAT(ReadCsvDataset(testing::TempDir() + "/none.csv", {{{"a"}}}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("none.csv")));
}

}  // namespace
}  // namespace hawser::data
