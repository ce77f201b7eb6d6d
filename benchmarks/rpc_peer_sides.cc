#include "absl/strings/str_cat.h"
#include "benchmarks/peer_process.h"
#include "benchmarks/rpc_asked_side.h"
#include "benchmarks/rpc_side.h"

namespace hawser::benchmarks {
namespace {

// Compiles peers/rpc_tensorpipe.cc and runs it, so that building the benchmark
// does not require the library.
constexpr char kBuildAndRun[] =
    "dir=$(mktemp -d) && "
    "g++ -std=c++17 -O2 benchmarks/peers/rpc_tensorpipe.cc -o $dir/peer "
    "-ltensorpipe -lpthread && exec 9< $dir/peer && rm -r $dir && "
    "exec /proc/self/fd/9 ";

}  // namespace

absl::StatusOr<std::unique_ptr<RpcSide>> StartPyTorchSide(
    const std::string& python, const std::string& transports,
    const std::string& channels) {
  return StartAskedSide(
      {python, "benchmarks/peers/rpc_torch.py", transports, channels},
      "install the peer with: apt-get install python3-torch "
      "libopenblas0-pthread",
      PeerProcess::WhenIdle::kStopped);
}

absl::StatusOr<std::unique_ptr<RpcSide>> StartTensorPipeSide(
    const std::string& transport, const std::string& channel) {
  return StartAskedSide(
      {"/bin/sh", "-c", absl::StrCat(kBuildAndRun, transport, " ", channel)},
      "install the peer with: apt-get install g++ libtensorpipe-dev",
      PeerProcess::WhenIdle::kStopped);
}

}  // namespace hawser::benchmarks
