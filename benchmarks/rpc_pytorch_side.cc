#include <memory>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "benchmarks/peer_process.h"
#include "benchmarks/rpc_side.h"

namespace hawser::benchmarks {
namespace {

// Asks peers/rpc_torch.py for each turn. PyTorch sends tensors only, so that
// its small call is that of two tensors of one element.
class PyTorchSide final : public RpcSide {
 public:
  explicit PyTorchSide(std::unique_ptr<PeerProcess> peer)
      : peer_(std::move(peer)) {}

  absl::StatusOr<double> SmallCall(int64_t calls) override {
    return SmallTensorCall(calls);
  }
  absl::StatusOr<double> CallsInFlight(int64_t calls,
                                       int64_t in_flight) override {
    return TensorCallsInFlight(calls, in_flight);
  }
  absl::StatusOr<double> SmallTensorCall(int64_t calls) override {
    return Ask(absl::StrCat("small_call ", calls));
  }
  absl::StatusOr<double> TensorCallsInFlight(int64_t calls,
                                             int64_t in_flight) override {
    return Ask(absl::StrCat("calls_in_flight ", calls, " ", in_flight));
  }
  absl::StatusOr<double> OneWay(int64_t calls, int64_t bytes) override {
    return Ask(absl::StrCat("one_way ", calls, " ", bytes));
  }
  absl::StatusOr<double> RemoteToHere(int64_t calls) override {
    return Ask(absl::StrCat("remote_to_here ", calls));
  }

 private:
  absl::StatusOr<double> Ask(const std::string& request) {
    ASSIGN_OR_RETURN(const std::string reply, peer_->Ask(request));
    double value = 0;
    if (!absl::SimpleAtod(reply, &value) || value <= 0) {
      return absl::InternalError(
          absl::StrCat("PyTorch answered \"", reply, "\" to ", request));
    }
    return value;
  }

  const std::unique_ptr<PeerProcess> peer_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RpcSide>> StartPyTorchSide(
    const std::string& python, const std::string& transports,
    const std::string& channels) {
  ASSIGN_OR_RETURN(
      auto peer,
      PeerProcess::Start(
          {python, "benchmarks/peers/rpc_torch.py", transports, channels},
          "install the peer with: apt-get install python3-torch "
          "libopenblas0-pthread",
          PeerProcess::WhenIdle::kStopped));
  return std::make_unique<PyTorchSide>(std::move(peer));
}

}  // namespace hawser::benchmarks
