// Files with secrets.

#ifndef HAWSER_FS_PRIVATE_FILE_H_
#define HAWSER_FS_PRIVATE_FILE_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hawser::net {

// The content of a file that nobody but its owner may read: a regular file of
// mode 0600 or less, of this user or root, up to 1 MiB. Otherwise
// kPermissionDenied or kInvalidArgument, naming the file and what to do.
absl::StatusOr<std::string> ReadPrivateFile(const std::string& path);

// The same from an open descriptor up to its end, which may be a pipe; closes
// it.
absl::StatusOr<std::string> ReadPrivateDescriptor(int fd);

// A file that others may read, such as a certificate.
absl::StatusOr<std::string> ReadPublicFile(const std::string& path);

}  // namespace hawser::net

#endif  // HAWSER_FS_PRIVATE_FILE_H_
