// Escaping of untrusted text for a terminal.

#ifndef HAWSER_CLI_ESCAPE_FOR_TERMINAL_H_
#define HAWSER_CLI_ESCAPE_FOR_TERMINAL_H_

#include <string>
#include <string_view>

namespace hawser::cli {

// Returns `text` as one line. Line ends become spaces. Other control characters
// of ASCII and of UTF-8 (U+0080 to U+009F), which a terminal may interpret, are
// written as "\x1b". Other bytes, UTF-8 or not, are unchanged.
std::string EscapeForTerminal(std::string_view text);

}  // namespace hawser::cli

#endif  // HAWSER_CLI_ESCAPE_FOR_TERMINAL_H_
