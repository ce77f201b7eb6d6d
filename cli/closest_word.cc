#include "cli/closest_word.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace hawser::cli {
namespace {

constexpr size_t kMaxDistance = 2;

// Levenshtein distance, with one row of the matrix in memory.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::optional<std::string> ClosestWord(std::string_view typed,
                                       const std::vector<std::string>& words) {
  std::optional<std::string> closest;
  size_t least = kMaxDistance + 1;
  for (const std::string& word : words) {
    // Bounds the cost for a long argument.
    if (typed.size() > word.size() + kMaxDistance) continue;
    const size_t distance = EditDistance(typed, word);
    if (distance < least && distance < word.size()) {
      closest = word;
      least = distance;
    }
  }
  return closest;
}

}  // namespace hawser::cli
