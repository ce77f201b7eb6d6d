#include "launch/run/process_plan.h"

#include <cstddef>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "launch/job/job_options.h"
#include "launch/run/run_options.h"

namespace hawser::launch {

std::string ProcessPlan::name() const {
  return role == kDefaultRole ? absl::StrCat("rank ", rank)
                              : WorkerName(role, role_rank);
}

std::vector<ProcessPlan> PlanProcesses(const std::vector<Node>& nodes,
                                       int node_rank) {
  const Node& own = nodes[static_cast<size_t>(node_rank)];
  int rank = 0;
  int world_size = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (i < static_cast<size_t>(node_rank)) rank += nodes[i].num_processes();
    world_size += nodes[i].num_processes();
  }
  std::vector<ProcessPlan> plans;
  for (const JobRole& role : own.roles) {
    int role_rank = 0;
    int role_world_size = 0;
    for (size_t i = 0; i < nodes.size(); ++i) {
      const int count = nodes[i].count(role.name);
      if (i < static_cast<size_t>(node_rank)) role_rank += count;
      role_world_size += count;
    }
    for (int i = 0; i < role.count; ++i) {
      plans.push_back({.rank = rank++,
                       .world_size = world_size,
                       .local_rank = static_cast<int>(plans.size()),
                       .local_world_size = own.num_processes(),
                       .node_rank = node_rank,
                       .num_nodes = static_cast<int>(nodes.size()),
                       .role = role.name,
                       .role_rank = role_rank++,
                       .role_world_size = role_world_size});
    }
  }
  return plans;
}

std::vector<std::pair<std::string, std::string>> EnvironmentOf(
    const ProcessPlan& plan, const AttemptFacts& attempt) {
  std::vector<std::pair<std::string, std::string>> variables = {
      {"RANK", absl::StrCat(plan.rank)},
      {"WORLD_SIZE", absl::StrCat(plan.world_size)},
      {"LOCAL_RANK", absl::StrCat(plan.local_rank)},
      {"LOCAL_WORLD_SIZE", absl::StrCat(plan.local_world_size)},
      {"GROUP_RANK", absl::StrCat(plan.node_rank)},
      {"GROUP_WORLD_SIZE", absl::StrCat(plan.num_nodes)},
      {"ROLE_NAME", plan.role},
      {"ROLE_RANK", absl::StrCat(plan.role_rank)},
      {"ROLE_WORLD_SIZE", absl::StrCat(plan.role_world_size)},
      {"MASTER_ADDR", attempt.master.host},
      {"MASTER_PORT", absl::StrCat(attempt.master.port)},
      {"TORCHELASTIC_RESTART_COUNT", absl::StrCat(attempt.restart_count)},
      {"TORCHELASTIC_MAX_RESTARTS", absl::StrCat(attempt.max_restarts)},
      {"TORCHELASTIC_RUN_ID", attempt.run_id},
      // Rank 0 serves the store itself.
      {"TORCHELASTIC_USE_AGENT_STORE", "False"},
      {"HAWSER_INIT", "env://"}};
  if (std::getenv("PYTHONUNBUFFERED") == nullptr) {
    variables.emplace_back("PYTHONUNBUFFERED", "1");
  }
  if (plan.local_world_size > 1 && std::getenv("OMP_NUM_THREADS") == nullptr) {
    variables.emplace_back("OMP_NUM_THREADS", "1");
  }
  return variables;
}

}  // namespace hawser::launch
