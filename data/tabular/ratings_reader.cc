#include "data/tabular/ratings_reader.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "data/tabular/feature_key.h"
#include "data/tabular/parse_number.h"

namespace hawser::data {
namespace {

bool IsOfField(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' ||
         c == '-' || c == '+' || c == '.' ||
         static_cast<unsigned char>(c) >= 0x80;  // UTF-8.
}

std::string_view FirstSeparator(std::string_view line) {
  const auto begin = std::find_if_not(line.begin(), line.end(), IsOfField);
  const auto end = std::find_if(begin, line.end(), IsOfField);
  return line.substr(static_cast<size_t>(begin - line.begin()),
                     static_cast<size_t>(end - begin));
}

std::vector<std::string_view> Split(std::string_view line,
                                    std::string_view separator) {
  std::vector<std::string_view> fields;
  while (true) {
    const size_t end = line.find(separator);
    fields.push_back(line.substr(0, end));
    if (end == std::string_view::npos) return fields;
    line.remove_prefix(end + separator.size());
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<RatingsReader>> RatingsReader::Open(
    std::string path, std::string separator) {
  ASSIGN_OR_RETURN(LineReader lines, LineReader::Open(std::move(path)));
  return std::unique_ptr<RatingsReader>(
      new RatingsReader(std::move(lines), std::move(separator)));
}

absl::StatusOr<bool> RatingsReader::Next(Samples* samples) {
  while (true) {
    ASSIGN_OR_RETURN(const std::optional<std::string_view> line, lines_.Next());
    if (!line.has_value()) return false;
    if (line->empty()) continue;
    if (!begun_) {
      begun_ = true;
      if (separator_.empty()) separator_ = FirstSeparator(*line);
      if (separator_.empty()) {
        return lines_.Error(absl::StrCat(
            Quoted(*line), " is not a line user, item, rating, timestamp"));
      }
      if (IsHeader(*line)) continue;
    }
    if (samples != nullptr) RETURN_IF_ERROR(Append(*line, *samples));
    return true;
  }
}

bool RatingsReader::IsHeader(std::string_view line) const {
  const std::vector<std::string_view> fields = Split(line, separator_);
  return fields.size() >= 3 && !fields[2].empty() &&
         absl::ascii_isalpha(static_cast<unsigned char>(fields[2][0]));
}

absl::Status RatingsReader::Append(std::string_view line,
                                   Samples& samples) const {
  const std::vector<std::string_view> fields = Split(line, separator_);
  if (fields.size() != 3 && fields.size() != 4) {
    return lines_.Error(absl::StrCat(
        "the line has ", fields.size(), " fields separated by ",
        Quoted(separator_), ", not user, item, rating and perhaps timestamp"));
  }
  const absl::StatusOr<float> rating = ParseFloat(fields[2]);
  if (!rating.ok()) {
    return lines_.Error(absl::StrCat("rating: ", rating.status().message()));
  }
  if (fields.size() == 4) {
    const absl::Status timestamp = ParseFloat(fields[3]).status();
    if (!timestamp.ok()) {
      return lines_.Error(absl::StrCat("timestamp: ", timestamp.message()));
    }
  }
  RETURN_IF_ERROR(AppendId("user", fields[0], samples));
  RETURN_IF_ERROR(AppendId("item", fields[1], samples));
  samples.labels.push_back(*rating);
  return absl::OkStatus();
}

absl::Status RatingsReader::AppendId(const char* field, std::string_view id,
                                     Samples& samples) const {
  if (id.empty()) return lines_.Error(absl::StrCat(field, ": is missing"));
  uint64_t key = 0;
  if (std::all_of(id.begin(), id.end(),
                  [](unsigned char c) { return absl::ascii_isdigit(c); })) {
    const absl::StatusOr<uint64_t> number = ParseKey(id);
    if (!number.ok()) {
      return lines_.Error(absl::StrCat(field, ": ", number.status().message()));
    }
    key = *number;
  } else {
    key = FeatureKey(field, id);
  }
  samples.keys.push_back(static_cast<int64_t>(key));
  samples.values.push_back(1);
  return absl::OkStatus();
}

}  // namespace hawser::data
