// The store of a benchmark's workers, in a process of its own.

#ifndef HAWSER_BENCHMARKS_STORE_PROCESS_H_
#define HAWSER_BENCHMARKS_STORE_PROCESS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "benchmarks/peer_process.h"

namespace hawser::benchmarks {

// Starts this program with "--serve=store"; the process's description is the
// address of the store. gRPC's threads that serve the store then do not work
// for a measured worker.
absl::StatusOr<std::unique_ptr<PeerProcess>> StartStoreProcess();

// Runs in that process, until the end of standard input. Returns its exit code.
int ServeStore();

}  // namespace hawser::benchmarks

#endif  // HAWSER_BENCHMARKS_STORE_PROCESS_H_
