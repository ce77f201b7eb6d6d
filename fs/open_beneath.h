// Files whose names come from elsewhere.

#ifndef HAWSER_FS_OPEN_BENEATH_H_
#define HAWSER_FS_OPEN_BENEATH_H_

#include <sys/types.h>

#include <string>

#include "absl/status/statusor.h"

namespace hawser::net {

// Opens the relative `path` below an open directory, as openat(2) does, but by
// no way that leads out of it: not up, not from the root, and through no
// symbolic link, also if somebody plants one meanwhile. O_CLOEXEC is added to
// `flags`. The caller closes the descriptor.
//
//   kInvalidArgument  `path` leads out of the directory, or through a link.
//   otherwise         the system's error, naming `path`.
absl::StatusOr<int> OpenBeneath(int directory, const std::string& path,
                                int flags, mode_t mode = 0);

// The same in several steps, for kernels without openat2(2).
absl::StatusOr<int> OpenBeneathByComponents(int directory,
                                            const std::string& path, int flags,
                                            mode_t mode = 0);

}  // namespace hawser::net

#endif  // HAWSER_FS_OPEN_BENEATH_H_
