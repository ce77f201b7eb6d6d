#include "data/tabular/libsvm_reader.h"

#include <algorithm>
#include <cstddef>
#include <optional>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "data/tabular/parse_number.h"

namespace hawser::data {
namespace {

constexpr std::string_view kBlanks = " \t";

// Moves the word at the begin of `line` out of it. Empty at the end.
std::string_view TakeWord(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
  const std::string_view word = line.substr(0, line.find_first_of(kBlanks));
  line.remove_prefix(word.size());
  return word;
}

// The next line with a sample, without its comment.
absl::StatusOr<std::optional<std::string_view>> NextSample(LineReader& lines) {
  while (true) {
    ASSIGN_OR_RETURN(const auto line, lines.Next());
    if (!line.has_value()) return line;
    const std::string_view text = line->substr(0, line->find('#'));
    if (text.find_first_not_of(kBlanks) != std::string_view::npos) return text;
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<LibsvmReader>> LibsvmReader::Open(
    std::string path, int64_t num_keys) {
  if (num_keys < 0 || num_keys > kMaxLibsvmFeatures) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", num_keys, " features in a line: must be 0 to ",
                     kMaxLibsvmFeatures));
  }
  ASSIGN_OR_RETURN(LineReader lines, LineReader::Open(std::move(path)));
  return std::unique_ptr<LibsvmReader>(
      new LibsvmReader(std::move(lines), num_keys));
}

absl::StatusOr<bool> LibsvmReader::Next(Samples* samples) {
  ASSIGN_OR_RETURN(const auto line, NextSample(lines_));
  if (!line.has_value()) return false;
  if (samples != nullptr) RETURN_IF_ERROR(Append(*line, *samples));
  return true;
}

absl::Status LibsvmReader::Append(std::string_view line,
                                  Samples& samples) const {
  const std::string_view label = TakeWord(line);
  const absl::StatusOr<float> number = ParseFloat(label);
  if (!number.ok() || (*number != 0 && *number != 1 && *number != -1)) {
    return lines_.Error(
        absl::StrCat("the label ", Quoted(label), " is not 0, 1 or -1"));
  }
  samples.labels.push_back(*number == 1 ? 1.0f : 0.0f);
  const size_t begin = samples.keys.size();
  const size_t end = begin + static_cast<size_t>(width_.keys);
  for (std::string_view word = TakeWord(line); !word.empty();
       word = TakeWord(line)) {
    const auto error = [&](const std::string& why) {
      return lines_.Error(absl::StrCat("feature ", Quoted(word), ": ", why));
    };
    const size_t colon = word.find(':');
    if (colon == std::string_view::npos) return error("must be key:value");
    const auto key = ParseKey(word.substr(0, colon));
    if (!key.ok()) return error(std::string(key.status().message()));
    const auto value = ParseFloat(word.substr(colon + 1));
    if (!value.ok()) return error(std::string(value.status().message()));
    if (samples.keys.size() == end) {
      return lines_.Error(
          absl::StrCat("the line has more than ", width_.keys, " features"));
    }
    samples.keys.push_back(static_cast<int64_t>(*key));
    samples.values.push_back(*value);
  }
  // A key that the sample has anyway, so that no further row is looked up.
  const int64_t padding = samples.keys.size() > begin ? samples.keys[begin] : 0;
  samples.keys.resize(end, padding);
  samples.values.resize(end, 0);
  return absl::OkStatus();
}

absl::StatusOr<int64_t> LibsvmWidth(const std::string& path) {
  ASSIGN_OR_RETURN(LineReader lines, LineReader::Open(path));
  int64_t width = 0;
  while (true) {
    ASSIGN_OR_RETURN(auto line, NextSample(lines));
    if (!line.has_value()) return width;
    int64_t features = -1;  // The label is no feature.
    while (!TakeWord(*line).empty()) ++features;
    width = std::max(width, features);
    if (width > kMaxLibsvmFeatures) {
      return lines.Error(absl::StrCat("the line has more than ",
                                      kMaxLibsvmFeatures, " features"));
    }
  }
}

}  // namespace hawser::data
