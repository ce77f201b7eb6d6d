#include "benchmarks/collectives_side.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "benchmarks/measurement.h"
#include "collectives/make_group.h"
#include "collectives/process_group.h"
#include "store/file/store.h"
#include "tensor/tensor.h"

namespace hawser::benchmarks {
namespace {

using collectives::ProcessGroup;
using tensor::DType;
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

  // Rank 0 passes a request; the others get it.
  absl::StatusOr<std::string> Share(std::string request) {
    constexpr size_t kBytes = 64;
    request.resize(kBytes);
    Tensor text = Tensor::FromVector(
        std::vector<uint8_t>(request.begin(), request.end()), {kBytes});
    RETURN_IF_ERROR(group_.Broadcast(text, 0));
    const std::vector<uint8_t> bytes = text.ToVector<uint8_t>();
    return std::string(reinterpret_cast<const char*>(bytes.data()));
  }

 private:
  ProcessGroup& group_;
};

absl::Status Run(int rank, int processes, const std::string& directory) {
  ASSIGN_OR_RETURN(
      const auto store,
      store::FileStore::Open({.path = absl::StrCat(directory, "/store"),
                              .num_members = processes}));
  ASSIGN_OR_RETURN(
      const auto group,
      collectives::MakeProcessGroup(*store, {.rank = rank, .size = processes}));
  Side side(*group);
  if (rank == 0) std::cout << "ready hawser" << std::endl;
  while (true) {
    std::string line;
    if (rank == 0 && !std::getline(std::cin, line)) return absl::OkStatus();
    ASSIGN_OR_RETURN(line, side.Share(line));
    std::istringstream words(line);
    std::string operation;
    int64_t bytes = 0;
    words >> operation >> bytes;
    ASSIGN_OR_RETURN(const double us, side.Measure(operation, bytes));
    if (rank == 0) std::cout << us << std::endl;
  }
}

}  // namespace

int ServeCollectives(int processes, const std::string& directory) {
  int rank = 0;
  for (int other = 1; other < processes; ++other) {
    const pid_t child = fork();
    if (child < 0) return 1;
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      rank = other;
      break;
    }
  }
  const absl::Status status = Run(rank, processes, directory);
  // The others learn that rank 0 has left.
  if (rank != 0) return 0;
  if (status.ok()) return 0;
  std::fprintf(stderr, "collectives: %s\n",
               std::string(status.message()).c_str());
  return 1;
}

}  // namespace hawser::benchmarks
