// Programs whose processes form a group.

#ifndef HAWSER_LAUNCH_GROUP_GROUP_PROGRAM_H_
#define HAWSER_LAUNCH_GROUP_GROUP_PROGRAM_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "collectives/make_group.h"
#include "collectives/process_group.h"

namespace hawser::launch {

struct GroupProgram {
  // Begins its error messages.
  std::string name = {};
  // Processes to start on this machine if no launcher has started this one.
  int processes = 1;
  collectives::MakeGroupOptions group = {};
  // The work of a process.
  std::function<absl::Status(collectives::ProcessGroup& group)> run = {};
};

// Runs the work in the group of the processes that a launcher has started, or
// else starts the processes itself, as `hawser run --standalone` does, with
// `command`: the program's path and arguments. Returns the exit code. Call it
// from the main thread, before other threads start.
int RunGroupProgram(const GroupProgram& program,
                    const std::vector<std::string>& command);

}  // namespace hawser::launch

#endif  // HAWSER_LAUNCH_GROUP_GROUP_PROGRAM_H_
