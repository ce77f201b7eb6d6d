// A file that appears under its name either complete or not at all.

#ifndef HAWSER_FS_ATOMIC_FILE_H_
#define HAWSER_FS_ATOMIC_FILE_H_

#include <cstddef>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hawser::fs {

// Writes to a temporary file in the same directory, which Commit() renames to
// the final name. Destruction without Commit() removes the temporary file and
// leaves an existing file of that name unchanged. Returns the system's errors,
// naming the file: kResourceExhausted if the disk is full, kUnavailable if the
// device fails. Not thread-safe.
class AtomicFile {
 public:
  static absl::StatusOr<AtomicFile> Create(std::string path);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  absl::Status Append(std::span<const std::byte> bytes);

  // Syncs the bytes, renames the file, and syncs the directory. Call once.
  absl::Status Commit();

 private:
  AtomicFile(std::string path, std::string temporary_path, int fd);

  absl::Status Failed(const char* operation) const;

  std::string path_;
  std::string temporary_path_;
  int fd_;  // -1 when closed.
};

}  // namespace hawser::fs

#endif  // HAWSER_FS_ATOMIC_FILE_H_
