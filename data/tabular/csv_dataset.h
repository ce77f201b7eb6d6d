// A data set of a CSV file of numbers.

#ifndef HAWSER_DATA_TABULAR_CSV_DATASET_H_
#define HAWSER_DATA_TABULAR_CSV_DATASET_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "data/tensor_dataset.h"
#include "tensor/dtype.h"

namespace hawser::data {

// Columns of a file that form one tensor, named as in its header.
struct CsvColumns {
  std::vector<std::string> names;
  // kF32, or kI64 for whole numbers, such as class labels.
  tensor::DType dtype = tensor::DType::kF32;
};

// Reads the columns of `tensors` from a CSV file with a header, plain or
// gzip-compressed, as CsvReader does (data/tabular/csv_reader.h). Each line is
// a sample. A batch has, for each element of `tensors`, a tensor of shape
// [n, names.size()]. Other columns of the file may hold any text. The numbers
// are held in memory.
//
//   ReadCsvDataset("houses.csv", {{{"area", "rooms"}}, {{"price"}}})
//
// Errors of CsvReader, and kInvalidArgument, naming file, line and column, for
// a field that is not a number of its dtype; for a column that the file lacks,
// a dtype other than those above, or no columns.
absl::StatusOr<std::shared_ptr<const TensorDataset>> ReadCsvDataset(
    const std::string& path, const std::vector<CsvColumns>& tensors);

}  // namespace hawser::data

#endif  // HAWSER_DATA_TABULAR_CSV_DATASET_H_
