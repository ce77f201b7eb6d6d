#include "cli/escape_for_terminal.h"

#include <cstddef>

#include "absl/strings/str_cat.h"

namespace hawser::cli {

std::string EscapeForTerminal(std::string_view text) {
  std::string printable;
  printable.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool second_of_two =
        i > 0 && static_cast<unsigned char>(text[i - 1]) == 0xc2;
    if (byte == '\n') {
      printable += ' ';
    } else if (byte < 0x20 || byte == 0x7f ||
               (byte >= 0x80 && byte <= 0x9f && second_of_two)) {
      absl::StrAppend(&printable, "\\x", absl::Hex(byte, absl::kZeroPad2));
    } else {
      printable += text[i];
    }
  }
  return printable;
}

}  // namespace hawser::cli
