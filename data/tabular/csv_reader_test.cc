#include "data/tabular/csv_reader.h"

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/status_macros.h"
#include "async/testing/status_matchers.h"
#include "data/tabular/testing/text_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::data {
namespace {

using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Record = std::vector<std::string>;

// The header and all records.
absl::StatusOr<std::vector<Record>> Read(std::string_view text) {
  ASSIGN_OR_RETURN(CsvReader reader,
                   CsvReader::Open(WriteTextFile("table.csv", text)));
  std::vector<Record> records = {reader.header()};
  while (true) {
    ASSIGN_OR_RETURN(const bool more, reader.Next());
    if (!more) return records;
    records.emplace_back(reader.fields().begin(), reader.fields().end());
  }
}

auto Refused(const char* error) {
  return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(error));
}

TEST(CsvReaderTest, PlainFields) {
  EXPECT_THAT(Read("a,b\n1,x y\n\n,\n"),
              IsOkAndHolds(ElementsAre(Record{"a", "b"}, Record{"1", "x y"},
                                       Record{"", ""})));
  EXPECT_THAT(Read("a\r\n1"),
              IsOkAndHolds(ElementsAre(Record{"a"}, Record{"1"})));
}

TEST(CsvReaderTest, QuotedFields) {
  EXPECT_THAT(
      Read("\"a\",\"b,c\"\n\"say \"\"hi\"\"\",\"\"\n\"\"\"\",1\"2\n"),
      IsOkAndHolds(ElementsAre(Record{"a", "b,c"}, Record{"say \"hi\"", ""},
                               Record{"\"", "1\"2"})));
}

TEST(CsvReaderTest, WrongQuotes) {
  EXPECT_THAT(Read("a,b\n1,\"x\n"),
              Refused("table.csv:2: the quote of \"x\" is not closed"));
  EXPECT_THAT(Read("a,b\n\"x\"y,2\n"),
              Refused("table.csv:2: text follows the closing quote of \"x\""));
}

TEST(CsvReaderTest, WrongNumbersOfFields) {
  EXPECT_THAT(Read("a,b\n1,2\n1\n"),
              Refused("table.csv:3: the line has 1 fields, but the header has "
                      "2"));
  EXPECT_THAT(Read("a,b\n1,2,3\n"), Refused("table.csv:2: the line has 3"));
}

TEST(CsvReaderTest, BadHeaders) {
  EXPECT_THAT(Read(""), Refused("table.csv: the file is empty"));
  EXPECT_THAT(Read("\n\n"), Refused("table.csv: the file is empty"));
  EXPECT_THAT(Read("a,,c\n"), Refused("column 2 has no name"));
  EXPECT_THAT(Read("a,b,a\n"), Refused("has column \"a\" twice"));
}

TEST(CsvReaderTest, ErrorsOfFieldsNameTheColumn) {
  auto reader = CsvReader::Open(WriteTextFile("table.csv", "a,b\n1,2\n"));
  ASSERT_THAT(reader->Next(), IsOkAndHolds(true));
  EXPECT_THAT(reader->FieldError(1, "is odd"),
              Refused("table.csv:2: column 2 (\"b\"): is odd"));
}

TEST(CsvReaderTest, ASkippedRecordIsNotChecked) {
  auto reader = CsvReader::Open(WriteTextFile("table.csv", "a,b\n1\n3,4\n"));
  ASSERT_THAT(reader->Skip(), IsOkAndHolds(true));
  ASSERT_THAT(reader->Next(), IsOkAndHolds(true));
  EXPECT_THAT(reader->fields(), ElementsAre("3", "4"));
  EXPECT_THAT(reader->Skip(), IsOkAndHolds(false));
}

}  // namespace
}  // namespace hawser::data
