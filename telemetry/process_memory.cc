#include "telemetry/process_memory.h"

#include <fcntl.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <system_error>

namespace hawser::telemetry {
namespace {

// Returns the start of a file of /proc or /sys; empty if it cannot be read.
std::string ReadStart(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return "";
  char bytes[4096];
  const ssize_t size = read(fd, bytes, sizeof(bytes));
  close(fd);
  return size > 0 ? std::string(bytes, static_cast<size_t>(size)) : "";
}

// The number at the start of `text`, or `otherwise` if there is none.
size_t NumberIn(std::string_view text, size_t otherwise) {
  size_t number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() ? number : otherwise;
}

// The limit of this process's control group (version 2).
size_t ControlGroupLimit(size_t otherwise) {
  // "0::/path".
  const std::string groups = ReadStart("/proc/self/cgroup");
  const size_t at = groups.rfind("0::/");
  if (at == std::string::npos) return otherwise;
  std::string path = groups.substr(at + 3);
  path = path.substr(0, path.find('\n'));
  size_t limit = otherwise;
  // Each group is bound by those above it too.
  while (true) {
    limit = std::min(
        limit, NumberIn(ReadStart("/sys/fs/cgroup" + path + "/memory.max"),
                        otherwise));
    if (path.empty() || path == "/") return limit;
    path.resize(path.rfind('/'));
  }
}

}  // namespace

size_t ResidentBytes() {
  // "total resident ...", in pages.
  const std::string pages = ReadStart("/proc/self/statm");
  const size_t space = pages.find(' ');
  if (space == std::string::npos) return 0;
  return NumberIn(std::string_view(pages).substr(space + 1), 0) *
         static_cast<size_t>(sysconf(_SC_PAGE_SIZE));
}

size_t UsableMemoryBytes() {
  size_t bytes = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) *
                 static_cast<size_t>(sysconf(_SC_PAGE_SIZE));
  bytes = std::min(bytes, ControlGroupLimit(bytes));
  for (const auto resource : {RLIMIT_AS, RLIMIT_DATA}) {
    rlimit limit{};
    if (getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
      bytes = std::min<size_t>(bytes, limit.rlim_cur);
    }
  }
  return bytes;
}

void ReturnFreedMemory() { malloc_trim(0); }

}  // namespace hawser::telemetry
