#include "data/tabular/line_reader.h"

#include <zlib.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "async/testing/status_matchers.h"
#include "data/tabular/testing/text_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::data {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using Lines = std::vector<std::string>;

absl::StatusOr<Lines> ReadLines(const std::string& path) {
  ASSIGN_OR_RETURN(LineReader reader, LineReader::Open(path));
  Lines lines;
  while (true) {
    ASSIGN_OR_RETURN(const auto line, reader.Next());
    if (!line.has_value()) return lines;
    lines.emplace_back(*line);
  }
}

absl::StatusOr<Lines> LinesOf(std::string_view text) {
  return ReadLines(WriteTextFile("lines.txt", text));
}

std::string WriteGzip(const std::string& text) {
  std::string path = absl::StrCat(testing::TempDir(), "/lines.gz");
  const gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
  return path;
}

TEST(LineReaderTest, EndsOfLines) {
  EXPECT_THAT(LinesOf(""), IsOkAndHolds(IsEmpty()));
  EXPECT_THAT(LinesOf("\n"), IsOkAndHolds(ElementsAre("")));
  EXPECT_THAT(LinesOf("a\n\nb"), IsOkAndHolds(ElementsAre("a", "", "b")));
  EXPECT_THAT(LinesOf("a\r\nb\r\n"), IsOkAndHolds(ElementsAre("a", "b")));
  EXPECT_THAT(LinesOf("\xEF\xBB\xBF"
                      "a\n"),
              IsOkAndHolds(ElementsAre("a")));
}

TEST(LineReaderTest, ManyLinesOfAllLengths) {
  std::string text;
  Lines lines;
  for (size_t length = 0; length < 3000; ++length) {
    lines.emplace_back(length, static_cast<char>('a' + length % 26));
    absl::StrAppend(&text, lines.back(), "\n");
  }
  EXPECT_THAT(LinesOf(text), IsOkAndHolds(lines));
  EXPECT_THAT(ReadLines(WriteGzip(text)), IsOkAndHolds(lines));
}

TEST(LineReaderTest, ALineMayHaveAMebibyte) {
  const std::string longest(LineReader::kMaxLineBytes, 'x');
  EXPECT_THAT(LinesOf(absl::StrCat(longest, "\n", longest)),
              IsOkAndHolds(SizeIs(2)));
  for (const char* end : {"", "\n", "xxx"}) {
    EXPECT_THAT(LinesOf(absl::StrCat("a\n", longest, "x", end)),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("lines.txt:2: the line has more than "
                                   "1048576 bytes")));
  }
}

TEST(LineReaderTest, NulBytesAreRefused) {
  EXPECT_THAT(LinesOf(std::string("a\nb\0c\n", 6)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("lines.txt:2: the line has a NUL byte")));
}

TEST(LineReaderTest, DamagedAndMissingFilesAreNamed) {
  EXPECT_THAT(ReadLines("/no/such/file"),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("cannot open /no/such/file")));
  EXPECT_THAT(ReadLines(testing::TempDir()).status(), testing::Not(IsOk()));
  std::string text;
  for (int i = 0; i < 1000; ++i) absl::StrAppend(&text, i * i, "\n");
  const std::string path = WriteGzip(text);
  std::ifstream file(path, std::ios::binary);
  const std::string gzip{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(ReadLines(WriteTextFile("cut.gz", gzip.substr(0, 900))),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("cut.gz: truncated gzip data")));
}

TEST(QuotedTest, EscapesAndCuts) {
  EXPECT_EQ(Quoted("a\n\x01"), "\"a\\n\\x01\"");
  EXPECT_EQ(Quoted(std::string(50, 'a')),
            absl::StrCat("\"", std::string(40, 'a'), "...\""));
}

}  // namespace
}  // namespace hawser::data
