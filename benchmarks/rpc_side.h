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

// One side of the comparison of remote calls: a caller and, in a process of its
// own, the one it calls. Each method runs a turn of a case.
//
// kUnimplemented: this side has no such case.
class RpcSide {
 public:
  virtual ~RpcSide() = default;

  // Median round trip in microseconds of `calls` calls that carry 64 bytes each
  // way, one at a time.
  virtual absl::StatusOr<double> SmallCall(int64_t calls);
  // Calls per second, of as many bytes, `in_flight` at a time.
  virtual absl::StatusOr<double> CallsInFlight(int64_t calls,
                                               int64_t in_flight);
  // Bytes per second of `calls` calls, one at a time, each with one tensor or
  // message of `bytes` bytes there and next to nothing back.
  virtual absl::StatusOr<double> OneWay(int64_t calls, int64_t bytes);

  // As SmallCall, of the sum of two tensors of one element.
  virtual absl::StatusOr<double> SmallTensorCall(int64_t calls);
  // As CallsInFlight, of such sums.
  virtual absl::StatusOr<double> TensorCallsInFlight(int64_t calls,
                                                     int64_t in_flight);
  // References made on the other side, of such sums, and fetched, per second.
  virtual absl::StatusOr<double> RemoteToHere(int64_t calls);
  // Bytes of heap that each of `calls` calls takes while it waits for its
  // answer, both processes together.
  virtual absl::StatusOr<double> Outstanding(int64_t calls);
};

// Median in microseconds of `count` runs of `call`, after a few that warm up.
absl::StatusOr<double> MedianMicroseconds(
    int64_t count, const std::function<absl::Status()>& call);
// Runs of `call` per second, all of them together.
absl::StatusOr<double> PerSecond(int64_t count,
                                 const std::function<absl::Status()>& all);

// How two Hawser workers reach each other.
struct HawserWay {
  // Through shared memory, which is their default; else over the socket.
  bool same_host = true;
  bool busy_poll = false;
};

// Two Hawser workers.
absl::StatusOr<std::unique_ptr<RpcSide>> StartHawserSide(HawserWay way);
// gRPC's completion queues with nothing above.
absl::StatusOr<std::unique_ptr<RpcSide>> StartRawGrpcSide();
// PyTorch's RPC; `transports` and `channels` as its TensorPipe backend names
// them, its own choice if empty.
absl::StatusOr<std::unique_ptr<RpcSide>> StartPyTorchSide(
    const std::string& python, const std::string& transports,
    const std::string& channels);

// TensorPipe, over `transport` and `channel` as it names them.
absl::StatusOr<std::unique_ptr<RpcSide>> StartTensorPipeSide(
    const std::string& transport, const std::string& channel);
// memcpy within this process.
std::unique_ptr<RpcSide> MakeMemcpySide();

// The processes of the first two: the workers' store, and those that are
// called. They print "ready" and where they serve, and end with their standard
// input.
int ServeStore();
int ServeHawser(const std::string& store_address, HawserWay way);
int ServeRawGrpc();

}  // namespace hawser::benchmarks

#endif  // HAWSER_BENCHMARKS_RPC_SIDE_H_
