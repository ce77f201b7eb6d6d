#include "data/tabular/criteo_reader.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "data/tabular/feature_key.h"
#include "data/tabular/parse_number.h"

namespace hawser::data {
namespace {

bool IsNumbered(std::string_view name, char letter) {
  return name.size() > 1 && name[0] == letter &&
         std::all_of(name.begin() + 1, name.end(),
                     [](unsigned char c) { return absl::ascii_isdigit(c); });
}

}  // namespace

absl::StatusOr<std::unique_ptr<CriteoReader>> CriteoReader::Open(
    std::string path) {
  ASSIGN_OR_RETURN(CsvReader csv, CsvReader::Open(std::move(path)));
  std::unique_ptr<CriteoReader> reader(new CriteoReader(std::move(csv)));
  RETURN_IF_ERROR(reader->ReadHeader());
  return reader;
}

absl::Status CriteoReader::ReadHeader() {
  std::optional<size_t> label;
  for (size_t i = 0; i < csv_.header().size(); ++i) {
    const std::string& name = csv_.header()[i];
    if (name == "label") {
      label = i;
    } else if (IsNumbered(name, 'I')) {
      dense_columns_.push_back(i);
    } else if (IsNumbered(name, 'C')) {
      category_columns_.push_back(i);
    } else {
      return csv_.HeaderError(
          absl::StrCat("column ", i + 1, " is ", Quoted(name),
                       "; columns are \"label\", numbers \"I1\", \"I2\", ... "
                       "and categories \"C1\", \"C2\", ..."));
    }
  }
  if (!label.has_value()) {
    return csv_.HeaderError("the header has no column \"label\"");
  }
  label_column_ = *label;
  width_ = {.dense = static_cast<int64_t>(dense_columns_.size()),
            .keys = static_cast<int64_t>(category_columns_.size())};
  return absl::OkStatus();
}

absl::StatusOr<bool> CriteoReader::Next(Samples* samples) {
  if (samples == nullptr) return csv_.Skip();
  ASSIGN_OR_RETURN(const bool more, csv_.Next());
  if (!more) return false;
  RETURN_IF_ERROR(AppendLabel(*samples));
  for (const size_t column : dense_columns_) {
    RETURN_IF_ERROR(AppendDense(column, *samples));
  }
  for (const size_t column : category_columns_) {
    samples->keys.push_back(static_cast<int64_t>(
        FeatureKey(csv_.header()[column], csv_.fields()[column])));
    samples->values.push_back(1);
  }
  return true;
}

absl::Status CriteoReader::AppendLabel(Samples& samples) const {
  const std::string& text = csv_.fields()[label_column_];
  if (text != "0" && text != "1") {
    return csv_.FieldError(label_column_,
                           absl::StrCat(Quoted(text), " is not 0 or 1"));
  }
  samples.labels.push_back(text == "1" ? 1.0f : 0.0f);
  return absl::OkStatus();
}

absl::Status CriteoReader::AppendDense(size_t column, Samples& samples) const {
  const std::string& text = csv_.fields()[column];
  float value = 0;
  if (!text.empty()) {
    const absl::StatusOr<float> parsed = ParseFloat(text);
    if (!parsed.ok()) {
      return csv_.FieldError(column, std::string(parsed.status().message()));
    }
    value = std::log1p(std::max(*parsed, 0.0f));
  }
  samples.dense.push_back(value);
  return absl::OkStatus();
}

}  // namespace hawser::data
