#ifndef HAWSER_STORE_GRPC_CALL_H_
#define HAWSER_STORE_GRPC_CALL_H_

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/status.h>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "async/clock.h"

namespace hawser::store::internal {

// Lets calls of `context` end at `deadline`, or after five minutes if that is
// sooner, and wait until then for a connection.
void SetDeadline(async::MonotonicTime deadline, grpc::ClientContext* context);

// kDeadlineExceeded, saying if it was for want of a connection.
absl::Status OutOfTime(grpc::Channel& channel);

// Makes a call, which may be repeated without harm, until it is answered: again
// after its connection broke or its server went away. kDeadlineExceeded if it
// is not answered by `deadline`; otherwise what the server answers. Blocks.
absl::Status CallUntilAnswered(
    grpc::Channel& channel, async::MonotonicTime deadline,
    absl::FunctionRef<grpc::Status(grpc::ClientContext*)> attempt);

}  // namespace hawser::store::internal

#endif  // HAWSER_STORE_GRPC_CALL_H_
