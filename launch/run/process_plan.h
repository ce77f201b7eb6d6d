#ifndef HAWSER_LAUNCH_RUN_PROCESS_PLAN_H_
#define HAWSER_LAUNCH_RUN_PROCESS_PLAN_H_

#include <string>
#include <utility>
#include <vector>

#include "launch/run/node.h"
#include "store/endpoint.h"

namespace hawser::launch {

// The place of one process in a job. Ranks follow the order of the nodes and,
// on a node, of its local ranks; those in a role likewise.
struct ProcessPlan {
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;
  int local_world_size = 1;
  int node_rank = 0;
  int num_nodes = 1;
  std::string role = {};
  int role_rank = 0;
  int role_world_size = 1;

  // "trainer0", or "rank 3" for processes without a role of their own.
  std::string name() const;
};

// The processes of the node `node_rank`, in the order of their local ranks.
std::vector<ProcessPlan> PlanProcesses(const std::vector<Node>& nodes,
                                       int node_rank);

// Facts of one attempt, the same for all processes.
struct AttemptFacts {
  store::Endpoint master = {};
  int restart_count = 0;
  int max_restarts = 0;
  std::string run_id = {};
};

// The variables that a process of torchrun has, and HAWSER_INIT=env://, with
// which launch::Worker takes the others. Besides these PYTHONUNBUFFERED=1, so
// that lines of Python programs come when they are written, and, with several
// processes on the node, OMP_NUM_THREADS=1; both unless this process has them.
std::vector<std::pair<std::string, std::string>> EnvironmentOf(
    const ProcessPlan& plan, const AttemptFacts& attempt);

}  // namespace hawser::launch

#endif  // HAWSER_LAUNCH_RUN_PROCESS_PLAN_H_
