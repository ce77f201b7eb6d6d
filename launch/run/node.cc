#include "launch/run/node.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace hawser::launch {

int Node::num_processes() const {
  int number = 0;
  for (const JobRole& role : roles) number += role.count;
  return number;
}

int Node::count(const std::string& role) const {
  for (const JobRole& each : roles) {
    if (each.name == role) return each.count;
  }
  return 0;
}

std::string ToText(const Node& node) {
  return absl::StrCat(
      node.host, " ", node.num_nodes, " ", node.max_restarts, " ",
      absl::StrJoin(node.roles, ",", [](std::string* out, const JobRole& role) {
        absl::StrAppend(out, role.name, "=", role.count);
      }));
}

absl::StatusOr<Node> ParseNode(const std::string& text) {
  const auto malformed = [&text] {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' does not describe a node"));
  };
  const std::vector<std::string> fields = absl::StrSplit(text, ' ');
  Node node;
  if (fields.size() != 4 || !absl::SimpleAtoi(fields[1], &node.num_nodes) ||
      !absl::SimpleAtoi(fields[2], &node.max_restarts)) {
    return malformed();
  }
  node.host = fields[0];
  for (const absl::string_view part : absl::StrSplit(fields[3], ',')) {
    const std::pair<std::string, std::string> pair =
        absl::StrSplit(part, absl::MaxSplits('=', 1));
    JobRole role{pair.first, 0};
    if (!absl::SimpleAtoi(pair.second, &role.count) || role.count < 1 ||
        role.count > kMaxProcessesPerNode - node.num_processes()) {
      return malformed();
    }
    node.roles.push_back(std::move(role));
  }
  return node;
}

}  // namespace hawser::launch
