#include "net/wire_text.h"

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::net {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string Repeat(std::string_view text, size_t count) {
  std::string repeated;
  for (size_t i = 0; i < count; ++i) repeated += text;
  return repeated;
}

TEST(WireTextTest, KnowsUtf8) {
  for (const std::string_view text :
       {"", "plain", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"}) {
    EXPECT_TRUE(IsUtf8(text)) << text;
  }
  for (const std::string_view text : {
           "\x80",              // A continuation without a lead.
           "a\xc3",             // Ends inside a character.
           "\xc0\xaf",          // An overlong form.
           "\xed\xa0\x80",      // A surrogate.
           "\xf4\x90\x80\x80",  // Above U+10FFFF.
           "\xff",
       }) {
    EXPECT_FALSE(IsUtf8(text));
  }
}

// IsUtf8 reads several ASCII characters at a time.
TEST(WireTextTest, CharactersAreCheckedAtEveryOffset) {
  for (size_t before = 0; before < 20; ++before) {
    for (size_t after = 0; after < 20; ++after) {
      const std::string left(before, 'a');
      const std::string right(after, 'z');
      EXPECT_TRUE(IsUtf8(left + "\u00e9" + right)) << before << " " << after;
      EXPECT_TRUE(IsUtf8(left + right)) << before << " " << after;
      EXPECT_FALSE(IsUtf8(left + "\xe9" + right)) << before << " " << after;
      EXPECT_FALSE(IsUtf8(left + "\x80" + right)) << before << " " << after;
    }
  }
}

TEST(WireTextTest, RefusalShowsTheBytes) {
  EXPECT_THAT(CheckUtf8("address", "node\xc3\xa9:7"), IsOk());
  EXPECT_THAT(CheckUtf8("address", "node\xe9:7"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("address 'node\\xe9:7'")));
}

TEST(WireTextTest, ErrorTextThatFitsStaysAsItIs) {
  EXPECT_EQ(ToErrorText(""), "");
  EXPECT_EQ(ToErrorText("caf\xc3\xa9"), "caf\xc3\xa9");
  const std::string longest = Repeat("\xc3\xa9", kMaxErrorTextBytes / 2);
  EXPECT_EQ(ToErrorText(longest), longest);
}

TEST(WireTextTest, BytesThatAreNotUtf8AreReplacedOneByOne) {
  EXPECT_EQ(ToErrorText("caf\xe9 \xe2\x82."),
            "caf\xef\xbf\xbd \xef\xbf\xbd\xef\xbf\xbd.");
}

TEST(WireTextTest, LongErrorTextIsCutBetweenCharacters) {
  for (const std::string_view character :
       {"x", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xff"}) {
    // The cut meets each place inside a character.
    for (size_t offset = 0; offset < 4; ++offset) {
      const std::string text =
          std::string(offset, '-') + Repeat(character, 2 * kMaxErrorTextBytes);
      const std::string sent = ToErrorText(text);
      EXPECT_TRUE(IsUtf8(sent));
      EXPECT_LE(sent.size(), kMaxErrorTextBytes);
      EXPECT_GT(sent.size(), kMaxErrorTextBytes - 8);
      EXPECT_THAT(sent, StartsWith(std::string(offset, '-')));
      EXPECT_THAT(sent, EndsWith("..."));
      // An error that is passed on is not cut again.
      EXPECT_EQ(ToErrorText(sent), sent);
    }
  }
  EXPECT_THAT(ToErrorText(std::string(kMaxErrorTextBytes, 'x')),
              Not(EndsWith("...")));
}

}  // namespace
}  // namespace hawser::net
