// Gloo's side of the benchmark of collectives, over TCP on the loopback
// interface.
//
//   collectives_gloo PROCESSES DIRECTORY    an empty directory
//
// Prints "ready gloo", then reads requests from standard input, one per line,
// and replies as collectives_side.h says. all_reduce takes the fastest of
// Gloo's algorithms for the size. The benchmark compiles this file against the
// system's library when it runs.
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/reduce_scatter.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/rendezvous/prefix_store.h>
#include <gloo/transport/tcp/device.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <limits>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using Context = std::shared_ptr<gloo::rendezvous::Context>;
using Operation = std::function<void()>;

constexpr int kRepeats = 3;

class Side {
 public:
  Side(int rank, int processes, const std::string& directory)
      : rank_(rank), processes_(processes), files_(directory) {
    gloo::transport::tcp::attr attributes;
    attributes.hostname = "127.0.0.1";
    device_ = gloo::transport::tcp::CreateDevice(attributes);
    control_ = Connect();
  }

  // Rank 0 passes the request; the others get it.
  std::string Share(std::string request) {
    request.resize(64);
    gloo::BroadcastOptions options(control_);
    options.setOutput(request.data(), request.size());
    options.setRoot(0);
    options.setTimeout(std::chrono::hours(1));
    gloo::broadcast(options);
    return request.c_str();
  }

  double Measure(const std::string& operation, size_t bytes) {
    data_.assign(bytes / sizeof(float), 0.0f);
    const size_t part = data_.size() / static_cast<size_t>(processes_);
    part_.assign(part, 0.0f);
    double best = std::numeric_limits<double>::infinity();
    for (const auto& make : Algorithms(operation)) {
      // An algorithm that registers buffers changes its connections for ever.
      const Context context = Connect();
      best = std::min(best, Time(context, make(context), bytes));
    }
    return best;
  }

 private:
  using Make = std::function<Operation(Context)>;

  Context Connect() {
    auto context =
        std::make_shared<gloo::rendezvous::Context>(rank_, processes_);
    gloo::rendezvous::PrefixStore store(std::to_string(next_++), files_);
    context->connectFullMesh(store, device_);
    return context;
  }

  std::vector<Make> Algorithms(const std::string& operation) {
    if (operation == "all_gather") {
      return {[this](Context context) -> Operation {
        return [this, context] {
          gloo::AllgatherOptions options(context);
          options.setInput(part_.data(), part_.size());
          options.setOutput(data_.data(),
                            part_.size() * static_cast<size_t>(processes_));
          gloo::allgather(options);
        };
      }};
    }
    if (operation == "reduce_scatter") {
      return {[this](Context context) -> Operation {
        auto algorithm =
            std::make_shared<gloo::ReduceScatterHalvingDoubling<float>>(
                context, std::vector<float*>{data_.data()}, data_.size(),
                std::vector<int>(static_cast<size_t>(processes_),
                                 static_cast<int>(part_.size())));
        return [algorithm] { algorithm->run(); };
      }};
    }
    if (operation == "broadcast") {
      return {[this](Context context) -> Operation {
        return [this, context] {
          gloo::BroadcastOptions options(context);
          options.setOutput(data_.data(), data_.size());
          options.setRoot(0);
          gloo::broadcast(options);
        };
      }};
    }
    std::vector<Make> makes;
    for (const auto algorithm : {gloo::AllreduceOptions::Algorithm::RING,
                                 gloo::AllreduceOptions::Algorithm::BCUBE}) {
      makes.push_back([this, algorithm](Context context) -> Operation {
        return [this, algorithm, context] {
          void (*sum)(void*, const void*, const void*, size_t) =
              &gloo::sum<float>;
          gloo::AllreduceOptions options(context);
          options.setAlgorithm(algorithm);
          options.setOutput(data_.data(), data_.size());
          options.setReduceFunction(sum);
          gloo::allreduce(options);
        };
      });
    }
    makes.push_back([this](Context context) -> Operation {
      auto algorithm = std::make_shared<gloo::AllreduceRingChunked<float>>(
          context, std::vector<float*>{data_.data()},
          static_cast<int>(data_.size()));
      return [algorithm] { algorithm->run(); };
    });
    makes.push_back([this](Context context) -> Operation {
      auto algorithm = std::make_shared<gloo::AllreduceHalvingDoubling<float>>(
          context, std::vector<float*>{data_.data()},
          static_cast<int>(data_.size()));
      return [algorithm] { algorithm->run(); };
    });
    return makes;
  }

  double Time(const Context& context, const Operation& run, size_t bytes) {
    const size_t count = std::clamp<size_t>((size_t{32} << 20) / bytes, 2, 300);
    for (size_t i = 0; i < std::min<size_t>(count, 10); ++i) run();
    std::vector<double> times;
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
      gloo::BarrierOptions options(context);
      gloo::barrier(options);
      const auto begin = Clock::now();
      for (size_t i = 0; i < count; ++i) run();
      times.push_back(
          std::chrono::duration<double, std::micro>(Clock::now() - begin)
              .count() /
          static_cast<double>(count));
    }
    // So that no rank closes its connections while another one needs them.
    gloo::BarrierOptions options(context);
    gloo::barrier(options);
    std::sort(times.begin(), times.end());
    // The slowest rank counts, and rank 0 decides which algorithm is best.
    return times[times.size() / 2];
  }

  const int rank_;
  const int processes_;
  gloo::rendezvous::FileStore files_;
  std::shared_ptr<gloo::transport::Device> device_;
  int next_ = 0;
  Context control_;
  std::vector<float> data_;
  std::vector<float> part_;
};

void Run(int rank, int processes, const std::string& directory) {
  Side side(rank, processes, directory);
  if (rank == 0) std::cout << "ready gloo" << std::endl;
  std::string line;
  while (true) {
    if (rank == 0 && !std::getline(std::cin, line)) std::_Exit(0);
    std::istringstream words(side.Share(line));
    std::string operation;
    size_t bytes = 0;
    words >> operation >> bytes;
    const double time = side.Measure(operation, bytes);
    if (rank == 0) std::cout << time << std::endl;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const int processes = std::atoi(argv[1]);
  for (int rank = 1; rank < processes; ++rank) {
    if (fork() == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      Run(rank, processes, argv[2]);
    }
  }
  Run(0, processes, argv[2]);
}
