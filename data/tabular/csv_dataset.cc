#include "data/tabular/csv_dataset.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "data/tabular/csv_reader.h"
#include "data/tabular/line_reader.h"
#include "data/tabular/parse_number.h"
#include "tensor/tensor.h"

namespace hawser::data {
namespace {

// One tensor while it is read.
struct Numbers {
  tensor::DType dtype;
  // Places of the columns in a line of the file.
  std::vector<size_t> places;
  // The numbers so far, of which one of the two has them, by `dtype`.
  std::vector<float> floats;
  std::vector<int64_t> integers;
};

absl::StatusOr<Numbers> FindColumns(const CsvReader& reader,
                                    const CsvColumns& columns) {
  if (columns.names.empty()) {
    return reader.HeaderError("a tensor needs at least one column");
  }
  if (columns.dtype != tensor::DType::kF32 &&
      columns.dtype != tensor::DType::kI64) {
    return reader.HeaderError(
        absl::StrCat("columns are read as f32 or i64, not as ",
                     std::string(tensor::DTypeName(columns.dtype))));
  }
  Numbers numbers{columns.dtype, {}, {}, {}};
  const std::vector<std::string>& header = reader.header();
  for (const std::string& name : columns.names) {
    const auto found = std::find(header.begin(), header.end(), name);
    if (found == header.end()) {
      return reader.HeaderError(
          absl::StrCat("the header has no column ", Quoted(name)));
    }
    numbers.places.push_back(static_cast<size_t>(found - header.begin()));
  }
  return numbers;
}

template <class T>
absl::Status Append(const CsvReader& reader, size_t place,
                    const absl::StatusOr<T>& number, std::vector<T>& numbers) {
  if (!number.ok()) {
    return reader.FieldError(place, std::string(number.status().message()));
  }
  numbers.push_back(*number);
  return absl::OkStatus();
}

// Appends the numbers of the last line of `reader`.
absl::Status AppendLine(const CsvReader& reader, Numbers& numbers) {
  for (const size_t place : numbers.places) {
    const std::string& field = reader.fields()[place];
    if (numbers.dtype == tensor::DType::kF32) {
      RETURN_IF_ERROR(Append(reader, place, ParseFloat(field), numbers.floats));
    } else {
      RETURN_IF_ERROR(
          Append(reader, place, ParseInteger(field), numbers.integers));
    }
  }
  return absl::OkStatus();
}

Tensor ToTensor(const Numbers& numbers, int64_t num_lines) {
  const tensor::Shape shape{num_lines,
                            static_cast<int64_t>(numbers.places.size())};
  return numbers.dtype == tensor::DType::kF32
             ? Tensor::FromVector(numbers.floats, shape)
             : Tensor::FromVector(numbers.integers, shape);
}

}  // namespace

absl::StatusOr<std::shared_ptr<const TensorDataset>> ReadCsvDataset(
    const std::string& path, const std::vector<CsvColumns>& tensors) {
  ASSIGN_OR_RETURN(CsvReader reader, CsvReader::Open(path));
  std::vector<Numbers> read;
  read.reserve(tensors.size());
  for (const CsvColumns& columns : tensors) {
    ASSIGN_OR_RETURN(Numbers numbers, FindColumns(reader, columns));
    read.push_back(std::move(numbers));
  }
  int64_t num_lines = 0;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, reader.Next());
    if (!more) break;
    for (Numbers& numbers : read) RETURN_IF_ERROR(AppendLine(reader, numbers));
    ++num_lines;
  }
  std::vector<Tensor> columns;
  columns.reserve(read.size());
  for (Numbers& numbers : read) {
    // Frees the numbers once they are copied.
    columns.push_back(ToTensor(std::exchange(numbers, {}), num_lines));
  }
  return TensorDataset::Create(std::move(columns));
}

}  // namespace hawser::data
