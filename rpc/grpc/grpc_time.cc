#include "rpc/grpc/grpc_time.h"

#include <chrono>
#include <cstdint>

namespace hawser::rpc {

gpr_timespec ToGrpcTime(async::MonotonicTime time) {
  // gRPC's monotonic clock is the same as that of steady_clock.
  const int64_t nanoseconds =
      std::chrono::duration_cast<std::chrono::nanoseconds>(
          time.time_since_epoch())
          .count();
  return {.tv_sec = nanoseconds / 1'000'000'000,
          .tv_nsec = static_cast<int32_t>(nanoseconds % 1'000'000'000),
          .clock_type = GPR_CLOCK_MONOTONIC};
}

async::MonotonicTime FromGrpcTime(gpr_timespec time) {
  if (gpr_time_cmp(time, gpr_inf_future(time.clock_type)) == 0) {
    return async::kNever;
  }
  const gpr_timespec monotonic =
      gpr_convert_clock_type(time, GPR_CLOCK_MONOTONIC);
  // A peer's timeout may exceed the range of the clock.
  constexpr int64_t kLongest =
      std::chrono::floor<std::chrono::seconds>(async::kNever.time_since_epoch())
          .count();
  if (monotonic.tv_sec >= kLongest) return async::kNever;
  return async::MonotonicTime(std::chrono::seconds(monotonic.tv_sec) +
                              std::chrono::nanoseconds(monotonic.tv_nsec));
}

}  // namespace hawser::rpc
