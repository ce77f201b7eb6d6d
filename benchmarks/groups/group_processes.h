// Processes of a group that a benchmark measures.

#ifndef HAWSER_BENCHMARKS_GROUPS_GROUP_PROCESSES_H_
#define HAWSER_BENCHMARKS_GROUPS_GROUP_PROCESSES_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "collectives/process_group.h"

namespace hawser::benchmarks {

// Replies to a request; runs on all ranks. The reply of rank 0 counts.
using GroupReply = std::function<absl::StatusOr<double>(
    collectives::ProcessGroup& group, const std::string& request)>;

struct ServeGroupOptions {
  int processes = 0;
  // Of the store; empty.
  std::string directory = {};
  // As MakeGroupOptions::backend.
  std::string backend = {};
  // Above 0: half of the processes in each end of a ShapedLink of this rate,
  // with the backend "gloo".
  int link_mbit_per_s = 0;
  // Ranks that the backend "gloo" takes for those of one machine.
  int ranks_per_machine = 1;
};

// Runs the processes of one group. Rank 0 prints "ready hawser", then passes
// each line of standard input to all ranks and prints its reply. Returns the
// exit code. Must be called before the process starts threads.
int ServeGroup(
    const ServeGroupOptions& options,
    const std::function<GroupReply(collectives::ProcessGroup&)>& make_reply);

}  // namespace hawser::benchmarks

#endif  // HAWSER_BENCHMARKS_GROUPS_GROUP_PROCESSES_H_
