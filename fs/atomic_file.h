// A file that appears under its name complete or not at all.

#ifndef HAWSER_FS_ATOMIC_FILE_H_
#define HAWSER_FS_ATOMIC_FILE_H_

#include <cstddef>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hawser::tensor::internal {

// Bytes go to a temporary file beside the final one, which Commit() renames.
// Destroyed without that, it removes the temporary file and leaves what had the
// name before. Errors are those of the system, naming the file. Not
// thread-safe.
class AtomicFile {
 public:
  static absl::StatusOr<AtomicFile> Create(std::string path);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  absl::Status Append(std::span<const std::byte> bytes);

  // Syncs the bytes, renames the file, and syncs the folder. Call once.
  absl::Status Commit();

 private:
  AtomicFile(std::string path, std::string temporary_path, int fd);

  absl::Status Failed(const char* operation) const;

  std::string path_;
  std::string temporary_path_;
  int fd_;  // -1 when closed.
};

}  // namespace hawser::tensor::internal

#endif  // HAWSER_FS_ATOMIC_FILE_H_
