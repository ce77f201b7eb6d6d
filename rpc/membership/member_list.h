// List of a job's members, for clients that are not members.

#ifndef HAWSER_RPC_MEMBERSHIP_MEMBER_LIST_H_
#define HAWSER_RPC_MEMBERSHIP_MEMBER_LIST_H_

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "rpc/identity/worker_info.h"
#include "store/store.h"

namespace hawser::rpc {

// The workers that have joined `job` and neither left nor were declared lost,
// by rank, as `store` has it. One that died a moment ago may be among them. Two
// reads per event of the job's history.
//
//   kNotFound  no worker ever joined a job of that name.
//   What the store returns.
absl::StatusOr<std::vector<WorkerInfo>> ListMembers(store::Store* store,
                                                    std::string_view job);

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_MEMBERSHIP_MEMBER_LIST_H_
