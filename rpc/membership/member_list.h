// List of a job's members, for clients that are not members.

#ifndef HAWSER_RPC_MEMBERSHIP_MEMBER_LIST_H_
#define HAWSER_RPC_MEMBERSHIP_MEMBER_LIST_H_

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "rpc/identity/worker_info.h"
#include "store/store.h"

namespace hawser::rpc {

// Returns the workers that have joined `job` and have neither left nor been
// declared lost, ordered by rank, as recorded in `store`. A worker that died
// recently may still be listed. Costs two reads per event of the job's history.
//
//   kNotFound  no worker has ever joined a job of that name.
//   Other errors are those of the store.
absl::StatusOr<std::vector<WorkerInfo>> ListMembers(store::Store* store,
                                                    std::string_view job);

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_MEMBERSHIP_MEMBER_LIST_H_
