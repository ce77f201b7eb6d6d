#include "cli/printable.h"

#include "gtest/gtest.h"

namespace hawser::cli {
namespace {

TEST(PrintableTest, ControlCharactersAreWrittenOut) {
  EXPECT_EQ(Printable("a\x1b[2Jb\r\x7f"), "a\\x1b[2Jb\\x0d\\x7f");
  EXPECT_EQ(Printable("one\ntwo"), "one two");
  // U+009B, which begins a command as ESC [ does.
  EXPECT_EQ(Printable("\xc2\x9b"), "\xc2\\x9b");
}

TEST(PrintableTest, TextIsLeftAlone) {
  // The second byte of U+015B is 0x9b as well.
  for (const char* text : {"", "worker 'w0': \"a\\b\"", "\xc5\x9b", "\x9b"}) {
    EXPECT_EQ(Printable(text), text);
  }
}

}  // namespace
}  // namespace hawser::cli
