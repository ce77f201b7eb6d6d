// Benchmark of data-parallel training between processes of one machine,
// compared with PyTorch in the same run.
//
//   ./bazelw run -c opt //benchmarks:ddp -- --quick
//
//   mlp_2    steps per second of two processes that train a perceptron
//            784-512-512-10, with batches of 128 in each, SGD, and one thread
//            in each
//   mlp_2 / alone   compared with one process without communication, of which
//                   another copy runs at the same time
//
// Peers:
//   torch   DistributedDataParallel with Gloo
//   alone
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/check.h"
#include "async/status_macros.h"
#include "autograd/backward.h"
#include "benchmarks/group_processes.h"
#include "benchmarks/measurement.h"
#include "benchmarks/peer_process.h"
#include "benchmarks/temporary_directory.h"
#include "collectives/process_group.h"
#include "nn/linear.h"
#include "nn/loss.h"
#include "nn/sequential.h"
#include "optim/optimizer.h"
#include "optim/sgd.h"
#include "parallel/distributed_data_parallel.h"
#include "tensor/ops/random.h"
#include "tensor/tensor.h"

ABSL_FLAG(bool, quick, false, "Finish within 50 seconds.");
ABSL_FLAG(std::string, python, "/usr/bin/python3",
          "Python interpreter with PyTorch.");
ABSL_FLAG(int, serve, 0, "Internal: number of processes of Hawser's side.");
ABSL_FLAG(std::string, directory, "", "Internal: of the side's store.");

namespace hawser::benchmarks {
namespace {

using collectives::ProcessGroup;
using tensor::Tensor;

constexpr int64_t kBatch = 128;
constexpr int kSteps = 40;

// The model and its batch on one rank.
class Trainer {
 public:
  static absl::StatusOr<std::shared_ptr<Trainer>> Create(ProcessGroup& group) {
    auto trainer = std::make_shared<Trainer>();
    tensor::Generator generator(0);
    constexpr int64_t kSizes[] = {784, 512, 512, 10};
    for (int i = 0; i < 3; ++i) {
      ASSIGN_OR_RETURN(
          auto layer,
          nn::Linear::Create({.in_features = kSizes[i],
                              .out_features = kSizes[i + 1],
                              .activation = i < 2 ? tensor::Activation::kRelu
                                                  : tensor::Activation::kNone},
                             generator));
      trainer->model_.Append(absl::StrCat("fc", i), std::move(layer));
    }
    ASSIGN_OR_RETURN(trainer->optimizer_,
                     optim::Optimizer::Create(trainer->model_.parameters(),
                                              optim::Sgd({.lr = 0.01})));
    ASSIGN_OR_RETURN(
        trainer->parallel_,
        parallel::DistributedDataParallel::Create(trainer->model_, group));
    trainer->inputs_ = Tensor::Full({kBatch, 784}, 0.5);
    std::vector<int64_t> labels;
    for (int64_t i = 0; i < kBatch; ++i) labels.push_back(i % 10);
    trainer->labels_ = Tensor::FromVector(labels, {kBatch});
    return trainer;
  }

  absl::Status Step(bool communicates) {
    optimizer_->ZeroGrad();
    const auto loss = [&]() -> absl::StatusOr<Tensor> {
      ASSIGN_OR_RETURN(const Tensor logits, model_.Forward(inputs_));
      return nn::CrossEntropyLoss(logits, labels_);
    };
    std::optional<parallel::DistributedDataParallel::NoSync> no_sync;
    if (!communicates) no_sync.emplace(*parallel_);
    ASSIGN_OR_RETURN(const Tensor result, parallel_->Forward(loss));
    RETURN_IF_ERROR(autograd::Backward(result));
    return optimizer_->Step();
  }

 private:
  nn::Sequential model_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  std::unique_ptr<parallel::DistributedDataParallel> parallel_;
  Tensor inputs_;
  Tensor labels_;
};

GroupReply MakeReply(ProcessGroup& group) {
  auto trainer = Trainer::Create(group);
  HAWSER_CHECK(trainer.ok());
  return [trainer = *trainer](
             ProcessGroup& of,
             const std::string& request) -> absl::StatusOr<double> {
    RETURN_IF_ERROR(of.Barrier());
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kSteps; ++i) {
      RETURN_IF_ERROR(trainer->Step(request == "together"));
    }
    RETURN_IF_ERROR(of.Barrier());
    return kSteps / std::chrono::duration<double>(
                        std::chrono::steady_clock::now() - begin)
                        .count();
  };
}

absl::Status Measure(const std::string& peer_name, PeerProcess& ours,
                     PeerProcess& peer, int turns) {
  Measurement measurement{.bench = "ddp",
                          .case_name = "mlp_2",
                          .unit = "steps/s",
                          .peer = peer_name};
  RETURN_IF_ERROR(ours.AskNumber("together").status());
  RETURN_IF_ERROR(peer.AskNumber("alone").status());
  for (int turn = 0; turn < turns; ++turn) {
    ASSIGN_OR_RETURN(const double value, ours.AskNumber("together"));
    ASSIGN_OR_RETURN(const double peer_value, peer.AskNumber("alone"));
    measurement.values.push_back(value);
    measurement.peer_values.push_back(peer_value);
  }
  Report(measurement);
  return absl::OkStatus();
}

absl::Status Run() {
  const int turns = absl::GetFlag(FLAGS_quick) ? 5 : 15;
  const TemporaryDirectory files;
  ASSIGN_OR_RETURN(const auto ours,
                   PeerProcess::Start(
                       {"/proc/self/exe", "--serve=2",
                        absl::StrCat("--directory=", files.Make("hawser"))},
                       "see the error above", PeerProcess::WhenIdle::kStopped));
  ASSIGN_OR_RETURN(
      const auto torch,
      PeerProcess::Start(
          {absl::GetFlag(FLAGS_python), "benchmarks/peers/ddp_torch.py", "2"},
          "install the peer with: apt-get install python3-torch "
          "libopenblas0-pthread",
          PeerProcess::WhenIdle::kStopped));
  RETURN_IF_ERROR(Measure("torch", *ours, *torch, turns));
  return Measure("alone", *ours, *ours, turns);
}

}  // namespace
}  // namespace hawser::benchmarks

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage(
      "Measures data-parallel training and compares it with PyTorch.");
  absl::ParseCommandLine(argc, argv);
  if (const int processes = absl::GetFlag(FLAGS_serve); processes > 0) {
    return hawser::benchmarks::ServeGroup(processes,
                                          absl::GetFlag(FLAGS_directory),
                                          hawser::benchmarks::MakeReply);
  }
  const absl::Status status = hawser::benchmarks::Run();
  if (!status.ok()) {
    std::fprintf(stderr, "ddp: %s\n", std::string(status.message()).c_str());
    return 1;
  }
  return 0;
}
