#include "cli/table.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <numeric>
#include <utility>

#include "absl/strings/str_join.h"
#include "cli/escape_for_terminal.h"

namespace hawser::cli {
namespace {

using nlohmann::json;

constexpr size_t kGap = 2;

std::string Cell(const json& value) {
  if (value.is_string()) return EscapeForTerminal(value.get<std::string>());
  if (value.is_null()) return "";
  if (!value.is_array()) return value.dump();
  return EscapeForTerminal(
      absl::StrJoin(value.get<std::vector<std::string>>(), ","));
}

std::string Pad(const std::string& text, size_t width) {
  return text + std::string(width - text.size() + kGap, ' ');
}

// `lines` begin with the names of the columns.
void PrintLines(const std::vector<std::vector<std::string>>& lines,
                const std::vector<size_t>& widths, std::ostream& out) {
  for (const auto& line : lines) {
    for (size_t i = 0; i + 1 < line.size(); ++i) out << Pad(line[i], widths[i]);
    out << line.back() << "\n";
  }
}

void PrintBlocks(const std::vector<std::vector<std::string>>& lines,
                 std::ostream& out) {
  const std::vector<std::string>& names = lines[0];
  size_t name_width = 0;
  for (const std::string& name : names) {
    name_width = std::max(name_width, name.size());
  }
  for (size_t row = 1; row < lines.size(); ++row) {
    if (row > 1) out << "\n";
    for (size_t i = 0; i < names.size(); ++i) {
      out << Pad(names[i], name_width) << lines[row][i] << "\n";
    }
  }
}

}  // namespace

void PrintTable(const Table& table, int width, std::ostream& out) {
  std::vector<std::vector<std::string>> lines = {table.columns};
  for (const auto& row : table.rows) {
    std::transform(row.begin(), row.end(),
                   std::back_inserter(lines.emplace_back()), &Cell);
  }
  std::vector<size_t> widths(table.columns.size());
  for (const auto& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) {
      widths[i] = std::max(widths[i], line[i].size());
    }
  }
  const size_t total =
      std::accumulate(widths.begin(), widths.end(), (widths.size() - 1) * kGap);
  if (width > 0 && total > static_cast<size_t>(width)) {
    PrintBlocks(lines, out);
  } else {
    PrintLines(lines, widths, out);
  }
}

void PrintJson(const Table& table, std::ostream& out) {
  json list = json::array();
  for (const auto& row : table.rows) {
    json object;
    for (size_t i = 0; i < row.size(); ++i) object[table.columns[i]] = row[i];
    list.push_back(std::move(object));
  }
  out << list.dump(2, ' ', false, json::error_handler_t::replace) << "\n";
}

}  // namespace hawser::cli
