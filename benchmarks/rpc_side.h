#ifndef HAWSER_BENCHMARKS_RPC_SIDE_H_
#define HAWSER_BENCHMARKS_RPC_SIDE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hawser::benchmarks {

// One side of the benchmark of remote calls: a caller, and a callee in a
// separate process. Each method runs a turn of a case.
//
// kUnimplemented: this side does not support the case.
class RpcSide {
 public:
  virtual ~RpcSide() = default;

  // Median round trip in microseconds of `calls` calls with 64 bytes in each
  // direction, one in flight.
  virtual absl::StatusOr<double> SmallCall(int64_t calls);
  // Calls per second, of the same size, with `in_flight` in flight.
  virtual absl::StatusOr<double> CallsInFlight(int64_t calls,
                                               int64_t in_flight);
  // Bytes per second of `calls` calls, one in flight, each with a tensor or
  // message of `bytes` bytes and a small reply.
  virtual absl::StatusOr<double> OneWay(int64_t calls, int64_t bytes);

  // Bytes per second of `calls` calls, one in flight, each with a small request
  // and a tensor of `bytes` bytes as its reply.
  virtual absl::StatusOr<double> Reply(int64_t calls, int64_t bytes);
  // Like SmallCall, of a function that runs on the callee's executor.
  virtual absl::StatusOr<double> PoolCall(int64_t calls);
  // Blocking calls of that size per second, from `threads` threads.
  virtual absl::StatusOr<double> CallsFromThreads(int64_t calls,
                                                  int64_t threads);

  // Like SmallCall, for the sum of two tensors of one element.
  virtual absl::StatusOr<double> SmallTensorCall(int64_t calls);
  // Like CallsInFlight, for such sums.
  virtual absl::StatusOr<double> TensorCallsInFlight(int64_t calls,
                                                     int64_t in_flight);
  // References to such sums that are created at the callee and fetched, per
  // second.
  virtual absl::StatusOr<double> RemoteToHere(int64_t calls);
  // Bytes of heap that each of `calls` calls uses while it waits for its reply,
  // in both processes together.
  virtual absl::StatusOr<double> Outstanding(int64_t calls);
};

// Median in microseconds of `count` runs of `call`, after a warm-up.
absl::StatusOr<double> MedianMicroseconds(
    int64_t count, const std::function<absl::Status()>& call);
// `count` divided by the time in seconds that one run of `all` takes.
absl::StatusOr<double> PerSecond(int64_t count,
                                 const std::function<absl::Status()>& all);

// Bytes per second of `count` runs of `call`, each of which moves `bytes`
// bytes, after a warm-up.
absl::StatusOr<double> BytesPerSecond(
    int64_t count, int64_t bytes, const std::function<absl::Status()>& call);

// The transport between two Hawser workers.
struct HawserWay {
  // True: shared memory, which is the default of workers; false: the socket.
  bool same_host = true;
  bool busy_poll = false;
};

// Two Hawser workers.
absl::StatusOr<std::unique_ptr<RpcSide>> StartHawserSide(HawserWay way);
// gRPC's completion queues without a layer above.
absl::StatusOr<std::unique_ptr<RpcSide>> StartRawGrpcSide();
// PyTorch's RPC. `transports` and `channels` are names of its TensorPipe
// backend; empty: its default.
absl::StatusOr<std::unique_ptr<RpcSide>> StartPyTorchSide(
    const std::string& python, const std::string& transports,
    const std::string& channels);

// TensorPipe. `transport` and `channel` are its names.
absl::StatusOr<std::unique_ptr<RpcSide>> StartTensorPipeSide(
    const std::string& transport, const std::string& channel);
// memcpy within this process.
std::unique_ptr<RpcSide> MakeMemcpySide();

// Run in the server processes of the first two sides, the callees. They print
// "ready", raw gRPC also its address, and return at the end of standard input.
int ServeHawser(const std::string& store_address, HawserWay way);
int ServeRawGrpc();

}  // namespace hawser::benchmarks

#endif  // HAWSER_BENCHMARKS_RPC_SIDE_H_
