#include "cli/closest_word.h"

#include <optional>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace hawser::cli {
namespace {

const std::vector<std::string>& Words() {
  static const std::vector<std::string>* const words =
      new std::vector<std::string>{"call", "list", "health", "certs"};
  return *words;
}

TEST(ClosestWordTest, WordsWithinTwoEditsAreFound) {
  EXPECT_EQ(ClosestWord("lst", Words()), "list");       // Deletion.
  EXPECT_EQ(ClosestWord("lisst", Words()), "list");     // Insertion.
  EXPECT_EQ(ClosestWord("cell", Words()), "call");      // Replacement.
  EXPECT_EQ(ClosestWord("heatlh", Words()), "health");  // Transposition.
  EXPECT_EQ(ClosestWord("list", Words()), "list");
}

TEST(ClosestWordTest, OtherWordsAreNotFound) {
  EXPECT_EQ(ClosestWord("nothing", Words()), std::nullopt);
  EXPECT_EQ(ClosestWord("", Words()), std::nullopt);
  EXPECT_EQ(ClosestWord("lixyz", Words()), std::nullopt);
  EXPECT_EQ(ClosestWord(std::string(1 << 20, 'l'), Words()), std::nullopt);
  EXPECT_EQ(ClosestWord("x", {"ab"}), std::nullopt);
}

TEST(ClosestWordTest, ClosestOfSeveralIsFound) {
  EXPECT_EQ(ClosestWord("cart", {"certs", "card", "art"}), "card");
}

}  // namespace
}  // namespace hawser::cli
