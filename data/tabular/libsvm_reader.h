// Samples of files in the format of libsvm.

#ifndef HAWSER_DATA_TABULAR_LIBSVM_READER_H_
#define HAWSER_DATA_TABULAR_LIBSVM_READER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "data/tabular/line_reader.h"
#include "data/tabular/samples.h"

namespace hawser::data {

// Greatest number of features of a line that the reader accepts.
inline constexpr int64_t kMaxLibsvmFeatures = 4096;

// Reads a file of lines "label key:value key:value ...", plain or
// gzip-compressed. Labels are 0 or -1, and 1. Keys are numbers below 2^64,
// values are numbers. Text from '#' to the end of a line, and empty lines, are
// left out.
class LibsvmReader final : public SampleReader {
 public:
  // `num_keys` is the width of the samples, at most kMaxLibsvmFeatures; a line
  // with more features is kInvalidArgument. Errors of LineReader::Open.
  static absl::StatusOr<std::unique_ptr<LibsvmReader>> Open(std::string path,
                                                            int64_t num_keys);

  const SampleWidth& width() const override { return width_; }
  absl::StatusOr<bool> Next(Samples* samples) override;

 private:
  LibsvmReader(LineReader lines, int64_t num_keys)
      : lines_(std::move(lines)), width_({.keys = num_keys}) {}

  absl::Status Append(std::string_view line, Samples& samples) const;

  LineReader lines_;
  SampleWidth width_;
};

// Returns the greatest number of features of a line. Reads the whole file.
absl::StatusOr<int64_t> LibsvmWidth(const std::string& path);

}  // namespace hawser::data

#endif  // HAWSER_DATA_TABULAR_LIBSVM_READER_H_
