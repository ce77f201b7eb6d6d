// A regular file open for reading by position.

#ifndef HAWSER_FS_INPUT_FILE_H_
#define HAWSER_FS_INPUT_FILE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hawser::fs {

// Errors name the file. Thread-safe.
class InputFile {
 public:
  // Returns the system's errors, and kInvalidArgument if the path is not a
  // regular file.
  static absl::StatusOr<InputFile> Open(std::string path);
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;
  ~InputFile();

  const std::string& path() const { return path_; }
  // The size of the file when it was opened.
  uint64_t bytes() const { return bytes_; }

  // Fills `dest` from byte `offset`. kDataLoss if the file ends earlier.
  absl::Status ReadAt(uint64_t offset, std::span<std::byte> dest) const;

 private:
  InputFile(std::string path, int fd, uint64_t bytes);

  std::string path_;
  int fd_;
  uint64_t bytes_;
};

}  // namespace hawser::fs

#endif  // HAWSER_FS_INPUT_FILE_H_
