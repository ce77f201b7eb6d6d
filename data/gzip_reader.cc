#include "data/gzip_reader.h"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace hawser::data {

void GzipReader::Closer::operator()(gzFile_s* file) const { gzclose(file); }

absl::StatusOr<GzipReader> GzipReader::Open(std::string path) {
  errno = 0;
  // zlib reads plain files through the same calls, byte for byte.
  gzFile_s* const file = gzopen(path.c_str(), "rb");
  if (file == nullptr) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  }
  return GzipReader(std::move(path), file);
}

absl::StatusOr<size_t> GzipReader::Read(std::span<char> dest) {
  size_t done = 0;
  while (done < dest.size()) {
    const auto chunk = static_cast<unsigned>(
        std::min<size_t>(dest.size() - done, size_t{1} << 30));
    const int got = gzread(file_.get(), dest.data() + done, chunk);
    int code = Z_OK;
    const char* message = gzerror(file_.get(), &code);
    if (code == Z_ERRNO) {
      return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", path_));
    }
    if (code == Z_BUF_ERROR) {
      return absl::InvalidArgumentError(
          absl::StrCat(path_, ": truncated gzip data"));
    }
    if (got < 0 || code != Z_OK) {
      return absl::InvalidArgumentError(
          absl::StrCat(path_, ": damaged gzip data (", message, ")"));
    }
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

}  // namespace hawser::data
