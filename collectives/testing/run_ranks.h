// Groups whose ranks are threads of a test.

#ifndef HAWSER_COLLECTIVES_TESTING_RUN_RANKS_H_
#define HAWSER_COLLECTIVES_TESTING_RUN_RANKS_H_

#include <functional>
#include <memory>
#include <vector>

#include "collectives/backend.h"
#include "collectives/process_group.h"

namespace hawser::collectives {

// Connects the backends of `size` ranks, each of which a thread will use. Null
// for ranks that are other processes, which run the same test. Without any, the
// machine lacks what the backend needs, and the test is skipped.
using MakeBackends =
    std::function<std::vector<std::unique_ptr<Backend>>(int size)>;

// Calls `body(group)` in a thread for each rank of a new group.
void RunRanks(const MakeBackends& make, int size,
              const std::function<void(ProcessGroup&)>& body,
              const ProcessGroupOptions& options = {});

}  // namespace hawser::collectives

#endif  // HAWSER_COLLECTIVES_TESTING_RUN_RANKS_H_
