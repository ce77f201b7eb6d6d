// Search for the word that a user may have meant.

#ifndef HAWSER_CLI_CLOSEST_WORD_H_
#define HAWSER_CLI_CLOSEST_WORD_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hawser::cli {

// Returns the word of `words` with the smallest edit distance (insertions,
// deletions and replacements) to `typed`, the first of several. nullopt if that
// distance is above 2, or not smaller than the length of the word.
std::optional<std::string> ClosestWord(std::string_view typed,
                                       const std::vector<std::string>& words);

}  // namespace hawser::cli

#endif  // HAWSER_CLI_CLOSEST_WORD_H_
