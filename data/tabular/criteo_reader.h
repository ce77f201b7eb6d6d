// Click logs in the form of Criteo's data sets.

#ifndef HAWSER_DATA_TABULAR_CRITEO_READER_H_
#define HAWSER_DATA_TABULAR_CRITEO_READER_H_

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "data/tabular/csv_reader.h"
#include "data/tabular/samples.h"

namespace hawser::data {

// Reads a CSV file with a header, plain or gzip-compressed:
//
//   label,I1,I2,C1,C2
//   1,5,,68fd1e64,80e26c9b
//   0,2,0,,f0cf0024
//
// The columns, in any order:
//
//   label         0 or 1.
//   I1, I2, ...   numbers, which become dense features log(1 + max(x, 0));
//                 an empty field becomes 0.
//   C1, C2, ...   categories, any text: the keys FeatureKey("C1", text), with
//                 the value 1. An empty field is a category as well.
class CriteoReader final : public SampleReader {
 public:
  // kInvalidArgument: a column has another name, or "label" is missing. Errors
  // of CsvReader.
  static absl::StatusOr<std::unique_ptr<CriteoReader>> Open(std::string path);

  const SampleWidth& width() const override { return width_; }
  absl::StatusOr<bool> Next(Samples* samples) override;

 private:
  explicit CriteoReader(CsvReader csv) : csv_(std::move(csv)) {}

  absl::Status ReadHeader();
  absl::Status AppendLabel(Samples& samples) const;
  absl::Status AppendDense(size_t column, Samples& samples) const;

  CsvReader csv_;
  SampleWidth width_;
  size_t label_column_ = 0;
  std::vector<size_t> dense_columns_;
  std::vector<size_t> category_columns_;
};

}  // namespace hawser::data

#endif  // HAWSER_DATA_TABULAR_CRITEO_READER_H_
