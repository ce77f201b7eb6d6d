#include "launch/run/console.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace hawser::launch {
namespace {

// Cyan, yellow, green, magenta, blue: red is that of errors.
constexpr std::array<const char*, 5> kColours = {"36", "33", "32", "35", "34"};

// Output that cannot be written is lost: the job does not end for it.
void WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written < 0 && errno != EINTR) return;
    if (written > 0) text.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace

void Console::PrintLine(OutputStream stream, const std::string& prefix,
                        int index, const std::string& line) {
  const bool is_error = stream == OutputStream::kError;
  const bool colours =
      is_error ? options_.error_colours : options_.output_colours;
  const char* const colour =
      kColours[static_cast<size_t>(index) % kColours.size()];
  const std::string text =
      colours
          ? absl::StrCat("\x1b[", colour, "m[", prefix, "]\x1b[0m ", line, "\n")
          : absl::StrCat("[", prefix, "] ", line, "\n");
  async::MutexLock lock(&mutex_);
  WriteAll(is_error ? options_.error_fd : options_.output_fd, text);
}

void Console::Say(const std::string& message, const std::string& lines) {
  std::string text = absl::StrCat("hawser: ", message, "\n");
  for (const absl::string_view line :
       absl::StrSplit(lines, '\n', absl::SkipEmpty())) {
    absl::StrAppend(&text, "    ", line, "\n");
  }
  async::MutexLock lock(&mutex_);
  WriteAll(options_.error_fd, text);
}

}  // namespace hawser::launch
