#ifndef HAWSER_NET_GRPC_INITIALIZE_H_
#define HAWSER_NET_GRPC_INITIALIZE_H_

namespace hawser::net {

// Initialises gRPC. Call it before creating the first gRPC object. Thread-safe.
//
// gRPC stays initialised until the process ends. Otherwise destroying the last
// gRPC object may block up to 10 s until an internal poll of gRPC returns. What
// it logs goes to the log of the library (net/grpc/library_log.h).
//
// Ends the search for deadlocks in absl::Mutex, which gRPC uses: Abseil without
// NDEBUG, as distributions build it, enters each lock of each thread in a graph
// of the whole process, which takes a seventh of the time of a call. For a
// program that looks for deadlocks of its own, call
// absl::SetMutexDeadlockDetectionMode afterwards.
void InitializeGrpc();

}  // namespace hawser::net

#endif  // HAWSER_NET_GRPC_INITIALIZE_H_
