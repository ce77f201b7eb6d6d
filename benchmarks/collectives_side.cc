#include "benchmarks/collectives_side.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "async/status_macros.h"
#include "benchmarks/groups/group_processes.h"
#include "benchmarks/measurement.h"
#include "collectives/process_group.h"
#include "tensor/tensor.h"

namespace hawser::benchmarks {
namespace {

using collectives::ProcessGroup;
using tensor::Tensor;

constexpr int kTurns = 3;

void Add(const float* a, float* sum, int64_t count) {
  for (int64_t i = 0; i < count; ++i) sum[i] += a[i];
}

class Side {
 public:
  explicit Side(ProcessGroup& group) : group_(group) {}

  absl::StatusOr<double> Measure(const std::string& operation, int64_t bytes) {
    const int64_t count = bytes / static_cast<int64_t>(sizeof(float));
    Tensor data = Tensor::Zeros({count});
    Tensor part = Tensor::Zeros({count / group_.size()});
    Tensor other = Tensor::Zeros({count});
    std::function<absl::Status()> run;
    if (operation == "all_reduce") {
      run = [&] { return group_.AllReduce(data); };
    } else if (operation == "all_gather") {
      run = [&] { return group_.AllGather(part, data); };
    } else if (operation == "reduce_scatter") {
      run = [&] { return group_.ReduceScatter(data, part); };
    } else if (operation == "broadcast") {
      run = [&] { return group_.Broadcast(data, 0); };
    } else if (operation == "sum") {
      run = [&] {
        Add(other.data<float>(), data.data<float>(), count);
        return absl::OkStatus();
      };
    } else {
      return absl::InvalidArgumentError(operation);
    }
    const int64_t times =
        std::clamp<int64_t>((int64_t{32} << 20) / bytes, 2, 300);
    for (int64_t i = 0; i < std::min<int64_t>(times, 10); ++i) {
      RETURN_IF_ERROR(run());
    }
    std::vector<double> us;
    for (int turn = 0; turn < kTurns; ++turn) {
      RETURN_IF_ERROR(group_.Barrier());
      const auto begin = std::chrono::steady_clock::now();
      for (int64_t i = 0; i < times; ++i) RETURN_IF_ERROR(run());
      us.push_back(std::chrono::duration<double, std::micro>(
                       std::chrono::steady_clock::now() - begin)
                       .count() /
                   static_cast<double>(times));
    }
    return Median(us);
  }

 private:
  ProcessGroup& group_;
};

}  // namespace

int ServeCollectives(const ServeGroupOptions& options) {
  return ServeGroup(options, [](ProcessGroup&) -> GroupReply {
    return [](ProcessGroup& group,
              const std::string& request) -> absl::StatusOr<double> {
      std::istringstream words(request);
      std::string operation;
      int64_t bytes = 0;
      words >> operation >> bytes;
      return Side(group).Measure(operation, bytes);
    };
  });
}

}  // namespace hawser::benchmarks
