#include "data/tabular/csv_reader.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"

namespace hawser::data {

absl::StatusOr<CsvReader> CsvReader::Open(std::string path) {
  ASSIGN_OR_RETURN(LineReader lines, LineReader::Open(std::move(path)));
  CsvReader reader(std::move(lines));
  ASSIGN_OR_RETURN(const auto line, reader.NextLine());
  if (!line.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat(reader.lines_.path(), ": the file is empty"));
  }
  RETURN_IF_ERROR(reader.Split(*line));
  reader.header_ = reader.fields_;
  for (size_t i = 0; i < reader.header_.size(); ++i) {
    const std::string& name = reader.header_[i];
    if (name.empty()) {
      return reader.HeaderError(
          absl::StrCat("column ", i + 1, " has no name in the header"));
    }
    const auto end = reader.header_.begin() + static_cast<ptrdiff_t>(i);
    if (std::find(reader.header_.begin(), end, name) != end) {
      return reader.HeaderError(
          absl::StrCat("the header has column ", Quoted(name), " twice"));
    }
  }
  return reader;
}

absl::StatusOr<std::optional<std::string_view>> CsvReader::NextLine() {
  while (true) {
    ASSIGN_OR_RETURN(const auto line, lines_.Next());
    if (!line.has_value() || !line->empty()) return line;
  }
}

absl::StatusOr<bool> CsvReader::Next() {
  ASSIGN_OR_RETURN(const auto line, NextLine());
  if (!line.has_value()) return false;
  RETURN_IF_ERROR(Split(*line));
  if (fields_.size() != header_.size()) {
    return lines_.Error(absl::StrCat("the line has ", fields_.size(),
                                     " fields, but the header has ",
                                     header_.size()));
  }
  return true;
}

absl::StatusOr<bool> CsvReader::Skip() {
  ASSIGN_OR_RETURN(const auto line, NextLine());
  return line.has_value();
}

absl::Status CsvReader::Split(std::string_view line) {
  size_t count = 0;
  for (bool more = true; more; ++count) {
    if (count == fields_.size()) fields_.emplace_back();
    RETURN_IF_ERROR(TakeField(line, fields_[count]));
    more = line.starts_with(',');
    if (more) line.remove_prefix(1);
  }
  fields_.resize(count);
  return absl::OkStatus();
}

absl::Status CsvReader::TakeField(std::string_view& rest,
                                  std::string& field) const {
  field.clear();
  if (!rest.starts_with('"')) {
    const size_t end = std::min(rest.find(','), rest.size());
    field = rest.substr(0, end);
    rest.remove_prefix(end);
    return absl::OkStatus();
  }
  rest.remove_prefix(1);
  while (true) {
    const size_t quote = rest.find('"');
    if (quote == std::string_view::npos) {
      return lines_.Error(absl::StrCat("the quote of ",
                                       Quoted(field.empty() ? rest : field),
                                       " is not closed in its line"));
    }
    field.append(rest.substr(0, quote));
    rest.remove_prefix(quote + 1);
    if (!rest.starts_with('"')) break;
    field.push_back('"');
    rest.remove_prefix(1);
  }
  if (rest.empty() || rest.starts_with(',')) return absl::OkStatus();
  return lines_.Error(
      absl::StrCat("text follows the closing quote of ", Quoted(field)));
}

absl::Status CsvReader::FieldError(size_t column,
                                   const std::string& message) const {
  return lines_.Error(absl::StrCat("column ", column + 1, " (",
                                   Quoted(header_[column]), "): ", message));
}

absl::Status CsvReader::HeaderError(const std::string& message) const {
  return absl::InvalidArgumentError(absl::StrCat(lines_.path(), ": ", message));
}

}  // namespace hawser::data
