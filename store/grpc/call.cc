#include "store/grpc/call.h"

#include <grpc/support/time.h>

#include <algorithm>
#include <chrono>

#include "absl/time/time.h"
#include "async/blocking_region.h"
#include "net/grpc/status.h"
#include "store/backoff.h"

namespace hawser::store::internal {
namespace {

// Time limit of one attempt of a call with an infinite deadline.
constexpr absl::Duration kMaxAttempt = absl::Minutes(5);

}  // namespace

void SetDeadline(async::MonotonicTime deadline, grpc::ClientContext* context) {
  const absl::Duration left =
      std::min(async::TimeBetween(std::chrono::steady_clock::now(), deadline),
               kMaxAttempt);
  context->set_deadline(gpr_time_add(
      gpr_now(GPR_CLOCK_MONOTONIC),
      gpr_time_from_nanos(absl::ToInt64Nanoseconds(left), GPR_TIMESPAN)));
  context->set_wait_for_ready(true);
}

absl::Status OutOfTime(grpc::Channel& channel) {
  return absl::DeadlineExceededError(
      channel.GetState(/*try_to_connect=*/false) == GRPC_CHANNEL_READY
          ? ""
          : "the server cannot be reached");
}

absl::Status CallUntilAnswered(
    grpc::Channel& channel, async::MonotonicTime deadline,
    absl::FunctionRef<grpc::Status(grpc::ClientContext*)> attempt) {
  async::BlockingRegion region;
  Backoff backoff;
  while (true) {
    grpc::ClientContext context;
    SetDeadline(deadline, &context);
    const grpc::Status status = attempt(&context);
    switch (status.error_code()) {
      case grpc::StatusCode::DEADLINE_EXCEEDED:
        break;
      case grpc::StatusCode::UNAVAILABLE:
      case grpc::StatusCode::CANCELLED:
        // The connection was lost or the server is shutting down.
        backoff.Pause(deadline);
        break;
      default:
        return net::FromGrpcStatus(status);
    }
    if (std::chrono::steady_clock::now() >= deadline) return OutOfTime(channel);
  }
}

}  // namespace hawser::store::internal
