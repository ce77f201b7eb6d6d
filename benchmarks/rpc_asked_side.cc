#include "benchmarks/rpc_asked_side.h"

#include <iomanip>
#include <iostream>
#include <limits>
#include <sstream>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"

namespace hawser::benchmarks {
namespace {

class AskedSide final : public RpcSide {
 public:
  explicit AskedSide(std::unique_ptr<PeerProcess> process)
      : process_(std::move(process)) {}

  absl::StatusOr<double> SmallCall(int64_t calls) override {
    return process_->AskNumber(absl::StrCat("small_call ", calls));
  }
  absl::StatusOr<double> CallsInFlight(int64_t calls,
                                       int64_t in_flight) override {
    return process_->AskNumber(
        absl::StrCat("calls_in_flight ", calls, " ", in_flight));
  }
  absl::StatusOr<double> OneWay(int64_t calls, int64_t bytes) override {
    return process_->AskNumber(absl::StrCat("one_way ", calls, " ", bytes));
  }
  absl::StatusOr<double> Reply(int64_t calls, int64_t bytes) override {
    return process_->AskNumber(absl::StrCat("reply ", calls, " ", bytes));
  }
  absl::StatusOr<double> PoolCall(int64_t calls) override {
    return process_->AskNumber(absl::StrCat("pool_call ", calls));
  }
  absl::StatusOr<double> CallsFromThreads(int64_t calls,
                                          int64_t threads) override {
    return process_->AskNumber(
        absl::StrCat("calls_from_threads ", calls, " ", threads));
  }
  absl::StatusOr<double> SmallTensorCall(int64_t calls) override {
    return process_->AskNumber(absl::StrCat("small_tensor_call ", calls));
  }
  absl::StatusOr<double> TensorCallsInFlight(int64_t calls,
                                             int64_t in_flight) override {
    return process_->AskNumber(
        absl::StrCat("tensor_calls_in_flight ", calls, " ", in_flight));
  }
  absl::StatusOr<double> RemoteToHere(int64_t calls) override {
    return process_->AskNumber(absl::StrCat("remote_to_here ", calls));
  }
  absl::StatusOr<double> Outstanding(int64_t calls) override {
    return process_->AskNumber(absl::StrCat("outstanding ", calls));
  }

 private:
  const std::unique_ptr<PeerProcess> process_;
};

absl::StatusOr<double> Answer(RpcSide& side, const std::string& line) {
  std::istringstream words(line);
  std::string method;
  int64_t calls = 0;
  int64_t more = 0;
  words >> method >> calls >> more;
  if (method == "small_call") return side.SmallCall(calls);
  if (method == "calls_in_flight") return side.CallsInFlight(calls, more);
  if (method == "one_way") return side.OneWay(calls, more);
  if (method == "reply") return side.Reply(calls, more);
  if (method == "pool_call") return side.PoolCall(calls);
  if (method == "calls_from_threads") return side.CallsFromThreads(calls, more);
  if (method == "small_tensor_call") return side.SmallTensorCall(calls);
  if (method == "tensor_calls_in_flight") {
    return side.TensorCallsInFlight(calls, more);
  }
  if (method == "remote_to_here") return side.RemoteToHere(calls);
  if (method == "outstanding") return side.Outstanding(calls);
  return absl::UnimplementedError(absl::StrCat("unknown method ", method));
}

}  // namespace

absl::StatusOr<std::unique_ptr<RpcSide>> StartAskedSide(
    const std::vector<std::string>& command, const std::string& advice,
    PeerProcess::WhenIdle when_idle) {
  ASSIGN_OR_RETURN(auto process,
                   PeerProcess::Start(command, advice, when_idle));
  return std::make_unique<AskedSide>(std::move(process));
}

int AnswerFor(absl::StatusOr<std::unique_ptr<RpcSide>> side) {
  if (!side.ok()) {
    std::cerr << "rpc: " << side.status() << "\n";
    return 1;
  }
  std::cout << std::setprecision(std::numeric_limits<double>::max_digits10)
            << "ready" << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    const absl::StatusOr<double> value = Answer(**side, line);
    if (value.ok()) {
      std::cout << *value << std::endl;
    } else {
      std::cout << value.status() << std::endl;
    }
  }
  return 0;
}

}  // namespace hawser::benchmarks
