#include "net/server/open_file_limit.h"

#include <sys/resource.h>

#include <limits>

#include "absl/strings/str_cat.h"
#include "telemetry/log.h"

namespace hawser::net {

uint64_t RaiseOpenFileLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return std::numeric_limits<uint64_t>::max();
  }
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

void WarnIfFewOpenFiles(int num_peers) {
  const uint64_t limit = RaiseOpenFileLimit();
  const uint64_t wanted = uint64_t{kFilesPerPeer} * num_peers;
  if (limit >= wanted) return;
  telemetry::Log(
      telemetry::LogSeverity::kWarning,
      absl::StrCat("this process may open at most ", limit,
                   " files and connections, too few for a job of ", num_peers,
                   " workers: raise the hard limit on each machine (ulimit "
                   "-Hn, LimitNOFILE=) to ",
                   wanted));
}

}  // namespace hawser::net
