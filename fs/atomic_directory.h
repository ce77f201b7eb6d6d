#ifndef HAWSER_FS_ATOMIC_DIRECTORY_H_
#define HAWSER_FS_ATOMIC_DIRECTORY_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hawser::fs {

// A directory that is filled under a temporary name beside its own and then
// appears atomically, synced to disk, with all its files. Symbolic links are
// followed only in the path above it (OpenBeneath).
class AtomicDirectory {
 public:
  // Creates the temporary directory, with mode 0700, that becomes `path`.
  // kNotFound if the parent directory of `path` does not exist.
  static absl::StatusOr<AtomicDirectory> Create(const std::string& path);

  AtomicDirectory(AtomicDirectory&& other) noexcept;
  AtomicDirectory& operator=(AtomicDirectory&&) = delete;
  // Removes the directory unless it was published.
  ~AtomicDirectory();

  // Writes a new file `name` with `mode`.
  absl::Status Write(const std::string& name, const std::string& content,
                     int mode);

  // kAlreadyExists if `path` exists and is not an empty directory.
  absl::Status Publish() &&;

  // Publishes; an existing directory `path` is replaced and removed with its
  // content.
  absl::Status Replace() &&;

 private:
  AtomicDirectory(std::string path, int parent);

  // Creates and opens `staged_`.
  absl::Status Make();
  absl::Status Sync(int directory) const;
  void RemoveStaged();

  const std::string path_;
  // The last component of `path_`.
  const std::string name_;
  // -1 after being moved from; `own_` is also -1 before its creation.
  int parent_ = -1;
  int own_ = -1;
  // Empty if there is nothing to remove.
  std::string staged_;
};

}  // namespace hawser::fs

#endif  // HAWSER_FS_ATOMIC_DIRECTORY_H_
