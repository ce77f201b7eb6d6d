// The process group of a program that a launcher has started.

#ifndef HAWSER_LAUNCH_GROUP_JOIN_GROUP_H_
#define HAWSER_LAUNCH_GROUP_JOIN_GROUP_H_

#include <memory>

#include "absl/status/statusor.h"
#include "collectives/make_group.h"
#include "collectives/process_group.h"

namespace hawser::launch {

// Joins the group of all processes that `hawser run`, torchrun, mpirun or SLURM
// have started, as PlaceFromEnvironment describes them; without a launcher, a
// group of one. Rank 0 serves the store in which they meet at
// MASTER_ADDR:MASTER_PORT (MasterEndpoint) until all have come; a group of one
// needs none. `options` are used except for rank and size. A restart by the
// launcher makes another group.
//
//   kAlreadyExists     another process uses the port.
//   kInvalidArgument   the environment has a rank, but no size; or port 0,
//                      which other ranks cannot find.
//   kDeadlineExceeded  not all ranks have come in time.
// Other errors are those of PlaceFromEnvironment, of the store, and of
// MakeProcessGroup. Credentials come from the environment.
absl::StatusOr<std::unique_ptr<collectives::ProcessGroup>> JoinGroup(
    collectives::MakeGroupOptions options = {});

}  // namespace hawser::launch

#endif  // HAWSER_LAUNCH_GROUP_JOIN_GROUP_H_
