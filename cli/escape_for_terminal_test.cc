#include "cli/escape_for_terminal.h"

#include "gtest/gtest.h"

namespace hawser::cli {
namespace {

TEST(EscapeForTerminalTest, ControlCharactersAreEscaped) {
  EXPECT_EQ(EscapeForTerminal("a\x1b[2Jb\r\x7f"), "a\\x1b[2Jb\\x0d\\x7f");
  EXPECT_EQ(EscapeForTerminal("one\ntwo"), "one two");
  // U+009B begins a control sequence, as ESC [ does.
  EXPECT_EQ(EscapeForTerminal("\xc2\x9b"), "\xc2\\x9b");
}

TEST(EscapeForTerminalTest, TextIsUnchanged) {
  // The second byte of U+015B is 0x9b as well.
  for (const char* text : {"", "worker 'w0': \"a\\b\"", "\xc5\x9b", "\x9b"}) {
    EXPECT_EQ(EscapeForTerminal(text), text);
  }
}

}  // namespace
}  // namespace hawser::cli
