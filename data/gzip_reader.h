// A file that is read from its begin to its end, plain or gzip-compressed.

#ifndef HAWSER_DATA_GZIP_READER_H_
#define HAWSER_DATA_GZIP_READER_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"

struct gzFile_s;

namespace hawser::data {

// Compression is detected by content, not by name. Errors name the file.
class GzipReader {
 public:
  // Returns the system's errors, such as kNotFound and kPermissionDenied.
  static absl::StatusOr<GzipReader> Open(std::string path);

  const std::string& path() const { return path_; }

  // Reads the next bytes into `dest`, fewer than its size only at the end of
  // the file, after which it returns 0. kInvalidArgument: the gzip data are
  // damaged or truncated.
  absl::StatusOr<size_t> Read(std::span<char> dest);

 private:
  struct Closer {
    void operator()(gzFile_s* file) const;
  };

  GzipReader(std::string path, gzFile_s* file)
      : path_(std::move(path)), file_(file) {}

  std::string path_;
  std::unique_ptr<gzFile_s, Closer> file_;
};

}  // namespace hawser::data

#endif  // HAWSER_DATA_GZIP_READER_H_
