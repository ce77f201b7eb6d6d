// Conversion between the clocks of gRPC and of transports.

#ifndef HAWSER_RPC_GRPC_GRPC_TIME_H_
#define HAWSER_RPC_GRPC_GRPC_TIME_H_

#include "async/clock.h"
#include "grpc/support/time.h"

namespace hawser::rpc {

// Returns a time of GPR_CLOCK_MONOTONIC, which is the clock of steady_clock.
gpr_timespec ToGrpcTime(async::MonotonicTime time);

// Converts a time of any clock of gRPC, also from an untrusted peer. Infinity,
// and what exceeds the range, becomes kNever.
async::MonotonicTime FromGrpcTime(gpr_timespec time);

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_GRPC_GRPC_TIME_H_
