#include "net/server/open_file_limit.h"

#include <sys/resource.h>

#include <atomic>
#include <cinttypes>
#include <cstdint>
#include <cstdio>

namespace hawser::net {
namespace {

// Enough for a server of thousands of workers.
constexpr uint64_t kEnough = 65'536;

}  // namespace

void RaiseOpenFileLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  static std::atomic<bool> warned{false};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= kEnough ||
      warned.exchange(true)) {
    return;
  }
  std::fprintf(stderr,
               "hawser: this process may open at most %" PRIu64
               " files and connections, too few for a large job: raise its "
               "hard limit (ulimit -Hn, LimitNOFILE=) to %" PRIu64 "\n",
               static_cast<uint64_t>(limit.rlim_cur), kEnough);
}

}  // namespace hawser::net
