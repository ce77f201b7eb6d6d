// Reading of files that hold secrets or certificates.

#ifndef HAWSER_FS_PRIVATE_FILE_H_
#define HAWSER_FS_PRIVATE_FILE_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hawser::fs {

// Returns the content of a file that only its owner may read: a regular file of
// mode 0600 or stricter, owned by this user or root, of up to 1 MiB. Otherwise
// returns kPermissionDenied or kInvalidArgument, naming the file and the
// remedy.
absl::StatusOr<std::string> ReadPrivateFile(const std::string& path);

// Same for an open descriptor, which may be a pipe. Reads to the end and closes
// it.
absl::StatusOr<std::string> ReadPrivateDescriptor(int fd);

// Returns the content of a file that other users may read, such as a
// certificate.
absl::StatusOr<std::string> ReadPublicFile(const std::string& path);

}  // namespace hawser::fs

#endif  // HAWSER_FS_PRIVATE_FILE_H_
