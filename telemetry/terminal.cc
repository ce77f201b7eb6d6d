#include "telemetry/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace hawser::telemetry {

int TerminalColumns(int fd) {
  winsize size = {};
  if (isatty(fd) != 1 || ioctl(fd, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col;
}

bool CanRedraw(int fd) {
  const char* const term = std::getenv("TERM");
  const char* const no_color = std::getenv("NO_COLOR");
  return isatty(fd) == 1 && term != nullptr &&
         std::string_view(term) != "dumb" &&
         (no_color == nullptr || *no_color == '\0');
}

}  // namespace hawser::telemetry
