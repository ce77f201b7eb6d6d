#include "cli/table.h"

#include <sstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace hawser::cli {
namespace {

using ::nlohmann::json;

Table Workers() {
  return {
      .columns = {"name", "rank", "roles"},
      .rows = {{"w0", 0, json(std::vector<std::string>{})},
               {"worker\n1", 10, json(std::vector<std::string>{"ps", "x"})}}};
}

std::string Print(int width) {
  std::ostringstream out;
  PrintTable(Workers(), width, out);
  return out.str();
}

TEST(TableTest, ColumnsAreAsWideAsTheirWidestValue) {
  const std::string lines =
      "name      rank  roles\n"
      "w0        0     \n"
      "worker 1  10    ps,x\n";
  EXPECT_EQ(Print(0), lines);
  EXPECT_EQ(Print(21), lines);
}

TEST(TableTest, RowsAreBlocksOnANarrowTerminal) {
  EXPECT_EQ(Print(20),
            "name   w0\n"
            "rank   0\n"
            "roles  \n"
            "\n"
            "name   worker 1\n"
            "rank   10\n"
            "roles  ps,x\n");
}

TEST(TableTest, JsonHasAnObjectPerRow) {
  std::ostringstream out;
  PrintJson(Workers(), out);
  EXPECT_EQ(
      json::parse(out.str())[1],
      json({{"name", "worker\n1"}, {"rank", 10}, {"roles", {"ps", "x"}}}));
}

}  // namespace
}  // namespace hawser::cli
