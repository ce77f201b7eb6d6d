// Lines of a text file.

#ifndef HAWSER_DATA_TABULAR_LINE_READER_H_
#define HAWSER_DATA_TABULAR_LINE_READER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "data/gzip_reader.h"

namespace hawser::data {

// Reads a text file, plain or gzip-compressed, line by line. Holds one line and
// a buffer of 256 KiB in memory.
class LineReader {
 public:
  static constexpr size_t kMaxLineBytes = size_t{1} << 20;

  // Errors of GzipReader::Open.
  static absl::StatusOr<LineReader> Open(std::string path);

  // Returns the next line without its end, "\n" or "\r\n", or nothing at the
  // end of the file. The text is valid until the next call. A byte order mark
  // at the begin of the file is left out.
  //
  // kInvalidArgument: the line is longer than kMaxLineBytes or has a NUL byte;
  // errors of GzipReader::Read.
  absl::StatusOr<std::optional<std::string_view>> Next();

  // Number of the last line, from 1.
  int64_t line_number() const { return line_number_; }
  const std::string& path() const { return file_.path(); }

  // kInvalidArgument with the path and the number of the last line before
  // `message`.
  absl::Status Error(const std::string& message) const;

 private:
  explicit LineReader(GzipReader file) : file_(std::move(file)) {}

  // Reads on, with the rest of the buffer at its begin.
  absl::Status Fill();

  GzipReader file_;
  std::string buffer_;
  // The bytes of `buffer_` that were not returned.
  size_t begin_ = 0;
  size_t end_ = 0;
  bool at_end_ = false;
  int64_t line_number_ = 0;
};

// `text` in quotes for an error: unprintable characters escaped, a long text
// cut.
std::string Quoted(std::string_view text);

}  // namespace hawser::data

#endif  // HAWSER_DATA_TABULAR_LINE_READER_H_
