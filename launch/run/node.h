#ifndef HAWSER_LAUNCH_RUN_NODE_H_
#define HAWSER_LAUNCH_RUN_NODE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launch/job/job_options.h"

namespace hawser::launch {

// Maximum number of processes of one node.
inline constexpr int kMaxProcessesPerNode = 4096;

// One node of a job, as its launcher describes it to the others.
struct Node {
  std::string host = {};
  // The processes of the node, in the order of their local ranks.
  std::vector<JobRole> roles = {};
  // Must be the same on all nodes.
  int num_nodes = 1;
  int max_restarts = 0;

  int num_processes() const;
  // Number of processes of a role; 0 if there is no such role.
  int count(const std::string& role) const;
};

// One line of text, which ParseNode reads. kInvalidArgument if it is malformed.
std::string ToText(const Node& node);
absl::StatusOr<Node> ParseNode(const std::string& text);

}  // namespace hawser::launch

#endif  // HAWSER_LAUNCH_RUN_NODE_H_
