#ifndef HAWSER_STORE_GRPC_CALL_H_
#define HAWSER_STORE_GRPC_CALL_H_

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/status.h>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "async/clock.h"

namespace hawser::store::internal {

// Sets the deadline of `context` to `deadline`, but at most five minutes from
// now, and makes its call wait for a connection until then.
void SetDeadline(async::MonotonicTime deadline, grpc::ClientContext* context);

// Returns kDeadlineExceeded; the message says if there was no connection.
absl::Status OutOfTime(grpc::Channel& channel);

// Makes an idempotent call, and retries it after a lost connection or a
// shutdown of the server. Returns the server's reply, or kDeadlineExceeded if
// there was none by `deadline`. Blocks.
absl::Status CallUntilAnswered(
    grpc::Channel& channel, async::MonotonicTime deadline,
    absl::FunctionRef<grpc::Status(grpc::ClientContext*)> attempt);

}  // namespace hawser::store::internal

#endif  // HAWSER_STORE_GRPC_CALL_H_
