// Tables of values, printed for people or as JSON.

#ifndef HAWSER_CLI_TABLE_H_
#define HAWSER_CLI_TABLE_H_

#include <ostream>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace hawser::cli {

struct Table {
  std::vector<std::string> columns;
  // One value per column: strings, numbers, lists of strings, and null, which
  // PrintTable leaves empty.
  std::vector<std::vector<nlohmann::json>> rows = {};
};

// Prints columns as wide as their widest value. If the lines would be longer
// than `width`, prints each value with its column's name on a line of its own
// instead, and an empty line between rows. `width` 0: lines of any length.
void PrintTable(const Table& table, int width, std::ostream& out);

// Prints a list with one object per row.
void PrintJson(const Table& table, std::ostream& out);

}  // namespace hawser::cli

#endif  // HAWSER_CLI_TABLE_H_
