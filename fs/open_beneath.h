// Opening of files by untrusted relative paths.

#ifndef HAWSER_FS_OPEN_BENEATH_H_
#define HAWSER_FS_OPEN_BENEATH_H_

#include <sys/types.h>

#include <string>

#include "absl/status/statusor.h"

namespace hawser::fs {

// Opens the relative `path` below an open directory, as openat(2) does, but
// refuses any path that leaves the directory: "..", absolute paths and symbolic
// links, including links created concurrently. Adds O_CLOEXEC to `flags`. The
// caller closes the descriptor.
//
//   kInvalidArgument  `path` leaves the directory or passes a link.
//   otherwise         the system's error, naming `path`.
absl::StatusOr<int> OpenBeneath(int directory, const std::string& path,
                                int flags, mode_t mode = 0);

// Same, one path component at a time, for kernels without openat2(2).
absl::StatusOr<int> OpenBeneathByComponents(int directory,
                                            const std::string& path, int flags,
                                            mode_t mode = 0);

}  // namespace hawser::fs

#endif  // HAWSER_FS_OPEN_BENEATH_H_
