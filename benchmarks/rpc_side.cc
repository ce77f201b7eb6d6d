#include "benchmarks/rpc_side.h"

#include <algorithm>
#include <chrono>

#include "async/status_macros.h"
#include "benchmarks/measurement.h"

namespace hawser::benchmarks {
namespace {

using Clock = std::chrono::steady_clock;

absl::Status NoSuchCase() {
  return absl::UnimplementedError("this side does not support the case");
}

}  // namespace

absl::StatusOr<double> RpcSide::SmallCall(int64_t) { return NoSuchCase(); }
absl::StatusOr<double> RpcSide::CallsInFlight(int64_t, int64_t) {
  return NoSuchCase();
}
absl::StatusOr<double> RpcSide::OneWay(int64_t, int64_t) {
  return NoSuchCase();
}
absl::StatusOr<double> RpcSide::Reply(int64_t, int64_t) { return NoSuchCase(); }
absl::StatusOr<double> RpcSide::PoolCall(int64_t) { return NoSuchCase(); }
absl::StatusOr<double> RpcSide::CallsFromThreads(int64_t, int64_t) {
  return NoSuchCase();
}
absl::StatusOr<double> RpcSide::SmallTensorCall(int64_t) {
  return NoSuchCase();
}
absl::StatusOr<double> RpcSide::TensorCallsInFlight(int64_t, int64_t) {
  return NoSuchCase();
}
absl::StatusOr<double> RpcSide::RemoteToHere(int64_t) { return NoSuchCase(); }
absl::StatusOr<double> RpcSide::Outstanding(int64_t) { return NoSuchCase(); }

absl::StatusOr<double> MedianMicroseconds(
    int64_t count, const std::function<absl::Status()>& call) {
  for (int64_t i = 0; i < std::min<int64_t>(count, 20); ++i) {
    RETURN_IF_ERROR(call());
  }
  std::vector<double> times;
  times.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const Clock::time_point start = Clock::now();
    RETURN_IF_ERROR(call());
    times.push_back(
        std::chrono::duration<double, std::micro>(Clock::now() - start)
            .count());
  }
  return Median(std::move(times));
}

absl::StatusOr<double> PerSecond(int64_t count,
                                 const std::function<absl::Status()>& all) {
  const Clock::time_point start = Clock::now();
  RETURN_IF_ERROR(all());
  return static_cast<double>(count) /
         std::chrono::duration<double>(Clock::now() - start).count();
}

absl::StatusOr<double> BytesPerSecond(
    int64_t count, int64_t bytes, const std::function<absl::Status()>& call) {
  RETURN_IF_ERROR(call());
  ASSIGN_OR_RETURN(const double per_second,
                   PerSecond(count, [&]() -> absl::Status {
                     for (int64_t i = 0; i < count; ++i) {
                       RETURN_IF_ERROR(call());
                     }
                     return absl::OkStatus();
                   }));
  return per_second * static_cast<double>(bytes);
}

}  // namespace hawser::benchmarks
