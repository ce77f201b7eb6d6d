#include <cstring>
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

// Compiles peers/rpc_tensorpipe.cc and becomes it: the program would otherwise
// need the library to be built.
constexpr char kBuildAndRun[] =
    "dir=$(mktemp -d) && "
    "g++ -std=c++17 -O2 benchmarks/peers/rpc_tensorpipe.cc -o $dir/peer "
    "-ltensorpipe -lpthread && exec 9< $dir/peer && rm -r $dir && "
    "exec /proc/self/fd/9 ";

// Asks peers/rpc_tensorpipe.cc for each turn.
class TensorPipeSide final : public RpcSide {
 public:
  explicit TensorPipeSide(std::unique_ptr<PeerProcess> peer)
      : peer_(std::move(peer)) {}

  absl::StatusOr<double> SmallCall(int64_t calls) override {
    return Ask(absl::StrCat("small_call ", calls));
  }
  absl::StatusOr<double> OneWay(int64_t calls, int64_t bytes) override {
    return Ask(absl::StrCat("one_way ", calls, " ", bytes));
  }

 private:
  absl::StatusOr<double> Ask(const std::string& request) {
    ASSIGN_OR_RETURN(const std::string reply, peer_->Ask(request));
    double value = 0;
    if (!absl::SimpleAtod(reply, &value) || value <= 0) {
      return absl::InternalError(
          absl::StrCat("TensorPipe answered \"", reply, "\" to ", request));
    }
    return value;
  }

  const std::unique_ptr<PeerProcess> peer_;
};

class MemcpySide final : public RpcSide {
 public:
  absl::StatusOr<double> OneWay(int64_t calls, int64_t bytes) override {
    const auto size = static_cast<size_t>(bytes);
    from_.resize(size, 'x');
    to_.resize(size, 'y');
    ASSIGN_OR_RETURN(const double per_second, PerSecond(calls, [&] {
                       for (int64_t i = 0; i < calls; ++i) {
                         std::memcpy(to_.data(), from_.data(), size);
                         // The compiler must not know that nobody reads it.
                         asm volatile("" : : "r"(to_.data()) : "memory");
                       }
                       return absl::OkStatus();
                     }));
    return per_second * static_cast<double>(bytes);
  }

 private:
  std::string from_;
  std::string to_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RpcSide>> StartTensorPipeSide(
    const std::string& transport, const std::string& channel) {
  ASSIGN_OR_RETURN(
      auto peer,
      PeerProcess::Start({"/bin/sh", "-c",
                          absl::StrCat(kBuildAndRun, transport, " ", channel)},
                         "install the peer with: apt-get install g++ "
                         "libtensorpipe-dev",
                         PeerProcess::WhenIdle::kStopped));
  return std::make_unique<TensorPipeSide>(std::move(peer));
}

std::unique_ptr<RpcSide> MakeMemcpySide() {
  return std::make_unique<MemcpySide>();
}

}  // namespace hawser::benchmarks
