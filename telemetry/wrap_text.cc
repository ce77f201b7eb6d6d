#include "telemetry/wrap_text.h"

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace hawser::telemetry {

std::string WrapText(std::string_view text, size_t indent, size_t columns) {
  std::string wrapped;
  std::string line;
  const auto end_line = [&] {
    if (line.empty()) return;
    wrapped += line + "\n";
    line.clear();
  };
  for (const absl::string_view word :
       absl::StrSplit(absl::string_view(text.data(), text.size()),
                      absl::ByAnyChar(" \n"), absl::SkipEmpty())) {
    if (line.size() + 1 + word.size() > columns) end_line();
    line += line.empty() ? std::string(indent, ' ') : " ";
    line.append(word.data(), word.size());
  }
  end_line();
  return wrapped;
}

}  // namespace hawser::telemetry
