// Sides of the benchmark with the caller in a separate process, so that threads
// of one side do not affect another.
//
// The process replies to each line "METHOD NUMBER..." with one line, the
// result. METHOD is the method of RpcSide in snake case.

#ifndef HAWSER_BENCHMARKS_RPC_ASKED_SIDE_H_
#define HAWSER_BENCHMARKS_RPC_ASKED_SIDE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "benchmarks/peer_process.h"
#include "benchmarks/rpc_side.h"

namespace hawser::benchmarks {

// Starts `command` and sends it a request for each turn; see
// PeerProcess::Start.
absl::StatusOr<std::unique_ptr<RpcSide>> StartAskedSide(
    const std::vector<std::string>& command, const std::string& advice,
    PeerProcess::WhenIdle when_idle);

// Runs in such a process: prints "ready", and replies to the requests on
// standard input until it ends. Returns the process's exit code.
int AnswerFor(absl::StatusOr<std::unique_ptr<RpcSide>> side);

}  // namespace hawser::benchmarks

#endif  // HAWSER_BENCHMARKS_RPC_ASKED_SIDE_H_
