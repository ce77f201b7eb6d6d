#ifndef HAWSER_FS_STAGED_DIRECTORY_H_
#define HAWSER_FS_STAGED_DIRECTORY_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hawser::cli {

// A directory that is filled under another name beside its own, and then
// appears at once, on disk, with all its files. Nothing is reached through a
// symbolic link but what is above it (net::OpenBeneath).
class StagedDirectory {
 public:
  // Makes it, of mode 0700, to become `path`. kNotFound: there is no directory
  // above `path`.
  static absl::StatusOr<StagedDirectory> Create(const std::string& path);

  StagedDirectory(StagedDirectory&& other) noexcept;
  StagedDirectory& operator=(StagedDirectory&&) = delete;
  // Removes what was not published.
  ~StagedDirectory();

  // A new file `name` of `mode`.
  absl::Status Write(const std::string& name, const std::string& content,
                     int mode);

  // kAlreadyExists if there is a `path` that is not an empty directory.
  absl::Status Publish() &&;

  // Publishes, or takes the place of the directory `path`, which is removed
  // with all that is in it.
  absl::Status Replace() &&;

 private:
  StagedDirectory(std::string path, int parent);

  // Makes and opens `staged_`.
  absl::Status Make();
  absl::Status Sync(int directory) const;
  void RemoveStaged();

  const std::string path_;
  // Of `path_`, in the directory above it.
  const std::string name_;
  // -1 when moved from; `own_` also before it is made.
  int parent_ = -1;
  int own_ = -1;
  // Empty when there is nothing to remove.
  std::string staged_;
};

}  // namespace hawser::cli

#endif  // HAWSER_FS_STAGED_DIRECTORY_H_
