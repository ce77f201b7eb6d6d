// Text of other parties, escaped for a terminal.

#ifndef HAWSER_CLI_ESCAPE_FOR_TERMINAL_H_
#define HAWSER_CLI_ESCAPE_FOR_TERMINAL_H_

#include <string>
#include <string_view>

namespace hawser::cli {

// `text` in one line: line ends are spaces, and other control characters of
// ASCII and of UTF-8 (U+0080 to U+009F), which can make a terminal do things,
// are written as "\x1b". The rest, UTF-8 or not, is left alone.
std::string EscapeForTerminal(std::string_view text);

}  // namespace hawser::cli

#endif  // HAWSER_CLI_ESCAPE_FOR_TERMINAL_H_
