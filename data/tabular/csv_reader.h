// Records of a CSV file with a header.

#ifndef HAWSER_DATA_TABULAR_CSV_READER_H_
#define HAWSER_DATA_TABULAR_CSV_READER_H_

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "data/tabular/line_reader.h"

namespace hawser::data {

// Reads a CSV file as RFC 4180 describes it, plain or gzip-compressed. A field
// in quotes may have commas and, as "", quotes, but not the end of a line.
// Empty lines are left out.
class CsvReader {
 public:
  // Opens the file and reads its header.
  //
  // kInvalidArgument: the file is empty, or the header has an empty or repeated
  // name. Errors of LineReader.
  static absl::StatusOr<CsvReader> Open(std::string path);

  // Names of the columns.
  const std::vector<std::string>& header() const { return header_; }

  // Reads the next record. Returns false at the end of the file.
  //
  // kInvalidArgument: the quotes or the number of fields are wrong. Errors of
  // LineReader.
  absl::StatusOr<bool> Next();
  // Skips a record, without a check of its fields.
  absl::StatusOr<bool> Skip();

  // The fields of the last record, as many as the header has. Valid until the
  // next call of Next or Skip.
  std::span<const std::string> fields() const { return fields_; }

  // kInvalidArgument with the file, the line and the column before `message`.
  absl::Status FieldError(size_t column, const std::string& message) const;
  // The same for the whole header.
  absl::Status HeaderError(const std::string& message) const;

 private:
  explicit CsvReader(LineReader lines) : lines_(std::move(lines)) {}

  // The next line that is not empty.
  absl::StatusOr<std::optional<std::string_view>> NextLine();
  absl::Status Split(std::string_view line);
  // Moves the field at the begin of `rest` to `field`.
  absl::Status TakeField(std::string_view& rest, std::string& field) const;

  LineReader lines_;
  std::vector<std::string> header_;
  std::vector<std::string> fields_;
};

}  // namespace hawser::data

#endif  // HAWSER_DATA_TABULAR_CSV_READER_H_
