// Sides whose caller is a process of its own, so that no side's threads take
// part in the work of another's.
//
// The process answers each line "METHOD NUMBER..." with a line that holds the
// figure. METHOD is the method of RpcSide in snake case.

#ifndef HAWSER_BENCHMARKS_RPC_ASKED_SIDE_H_
#define HAWSER_BENCHMARKS_RPC_ASKED_SIDE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "benchmarks/peer_process.h"
#include "benchmarks/rpc_side.h"

namespace hawser::benchmarks {

// Asks the process that `command` starts for each turn; see PeerProcess::Start.
absl::StatusOr<std::unique_ptr<RpcSide>> StartAskedSide(
    const std::vector<std::string>& command, const std::string& advice,
    PeerProcess::WhenIdle when_idle);

// Is such a process: says "ready", and answers from standard input to standard
// output until the input ends. The process's exit code.
int AnswerFor(absl::StatusOr<std::unique_ptr<RpcSide>> side);

}  // namespace hawser::benchmarks

#endif  // HAWSER_BENCHMARKS_RPC_ASKED_SIDE_H_
