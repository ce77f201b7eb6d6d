// Benchmark of training speed in one process and thread, compared with PyTorch
// in the same run.
//
//   ./bazelw run -c opt //benchmarks:local_training -- --quick
//
// A step is forward, softmax cross entropy, backward and SGD on one MLP:
//   mlp_small       784-128-64-10, batch 64, f32
//   mlp_large       784-512-512-10, batch 128, f32
//   mlp_large_bf16  the same in bf16 with f32 master weights, against
//                   PyTorch's f32
//
// Turns of both sides alternate. The ratio is computed for each pair of turns.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "autograd/backward.h"
#include "autograd/ops/cast.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/softmax.h"
#include "autograd/variable.h"
#include "benchmarks/measurement.h"
#include "benchmarks/peer_process.h"
#include "optim/optimizer.h"
#include "optim/sgd.h"
#include "tensor/ops/random.h"

ABSL_FLAG(bool, quick, false, "Finish within 50 seconds.");
ABSL_FLAG(std::string, python, "/usr/bin/python3",
          "Python interpreter with PyTorch.");
ABSL_FLAG(std::string, only, "", "Run only the case of this name.");

namespace hawser::benchmarks {
namespace {

using tensor::DType;

struct Case {
  std::string name;
  // The peer's name for the same model.
  std::string peer_case;
  std::vector<int64_t> widths;
  int64_t batch_samples;
  DType compute_dtype;
};

std::vector<Case> Cases() {
  return {
      {"mlp_small", "mlp_small", {784, 128, 64, 10}, 64, DType::kF32},
      {"mlp_large", "mlp_large", {784, 512, 512, 10}, 128, DType::kF32},
      {"mlp_large_bf16", "mlp_large", {784, 512, 512, 10}, 128, DType::kBF16},
  };
}

class Training {
 public:
  static absl::StatusOr<std::unique_ptr<Training>> Create(const Case& what) {
    std::unique_ptr<Training> training(new Training(what));
    tensor::Generator generator(1);
    for (size_t i = 0; i + 1 < what.widths.size(); ++i) {
      const double bound = 1 / std::sqrt(static_cast<double>(what.widths[i]));
      for (const tensor::Shape& shape :
           {tensor::Shape{what.widths[i + 1], what.widths[i]},
            tensor::Shape{what.widths[i + 1]}}) {
        ASSIGN_OR_RETURN(Tensor parameter,
                         tensor::Uniform(shape, -bound, bound, generator));
        RETURN_IF_ERROR(autograd::SetRequiresGrad(parameter));
        training->parameters_.push_back(std::move(parameter));
      }
    }
    ASSIGN_OR_RETURN(training->optimizer_,
                     optim::Optimizer::Create(training->parameters_,
                                              optim::Sgd({.lr = 0.05})));
    const int64_t n = what.batch_samples;
    ASSIGN_OR_RETURN(training->x_, tensor::Uniform({n, what.widths.front()}, 0,
                                                   1, generator));
    std::vector<int64_t> labels;
    for (int64_t i = 0; i < n; ++i) labels.push_back(i * 7 % 10);
    training->labels_ = Tensor::FromVector(labels, {n});
    return training;
  }

  absl::Status Step() {
    optimizer_->ZeroGrad();
    ASSIGN_OR_RETURN(Tensor h, autograd::Cast(x_, what_.compute_dtype));
    for (size_t i = 0; i < parameters_.size(); i += 2) {
      ASSIGN_OR_RETURN(const Tensor weight,
                       autograd::Cast(parameters_[i], what_.compute_dtype));
      ASSIGN_OR_RETURN(const Tensor bias,
                       autograd::Cast(parameters_[i + 1], what_.compute_dtype));
      ASSIGN_OR_RETURN(h, autograd::Linear(h, weight, bias,
                                           i + 2 < parameters_.size()
                                               ? autograd::Activation::kRelu
                                               : autograd::Activation::kNone));
    }
    ASSIGN_OR_RETURN(const Tensor logits, autograd::Cast(h, DType::kF32));
    ASSIGN_OR_RETURN(loss_, autograd::SoftmaxCrossEntropy(logits, labels_));
    RETURN_IF_ERROR(autograd::Backward(loss_));
    return optimizer_->Step();
  }

  // Runs `steps` steps and returns the time in seconds.
  absl::StatusOr<double> Run(int64_t steps) {
    const auto start = std::chrono::steady_clock::now();
    for (int64_t i = 0; i < steps; ++i) RETURN_IF_ERROR(Step());
    return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                         start)
        .count();
  }

  absl::StatusOr<double> Loss() const { return loss_.item<float>(); }

 private:
  explicit Training(const Case& what) : what_(what) {}

  const Case what_;
  std::vector<Tensor> parameters_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  Tensor x_;
  Tensor labels_;
  Tensor loss_;
};

// The number of steps that take about `seconds` in `run`. Also warms it up.
absl::StatusOr<int64_t> StepsIn(
    double seconds, const std::function<absl::StatusOr<double>(int64_t)>& run) {
  RETURN_IF_ERROR(run(10).status());
  ASSIGN_OR_RETURN(const double twenty, run(20));
  return std::max<int64_t>(1, static_cast<int64_t>(20 * seconds / twenty));
}

absl::Status Measure(const Case& what, PeerProcess& peer, int turns,
                     double turn_seconds) {
  ASSIGN_OR_RETURN(const auto training, Training::Create(what));
  const auto ours = [&](int64_t steps) { return training->Run(steps); };
  const auto theirs = [&](int64_t steps) {
    return peer.AskNumber(absl::StrCat(what.peer_case, " ", steps));
  };
  ASSIGN_OR_RETURN(const int64_t our_steps, StepsIn(turn_seconds, ours));
  ASSIGN_OR_RETURN(const int64_t peer_steps, StepsIn(turn_seconds, theirs));
  Measurement measurement{.bench = "local_training",
                          .case_name = what.name,
                          .unit = "steps/s",
                          .peer = "pytorch"};
  for (int turn = 0; turn < turns; ++turn) {
    ASSIGN_OR_RETURN(const double our_seconds, ours(our_steps));
    ASSIGN_OR_RETURN(const double peer_seconds, theirs(peer_steps));
    measurement.values.push_back(static_cast<double>(our_steps) / our_seconds);
    measurement.peer_values.push_back(static_cast<double>(peer_steps) /
                                      peer_seconds);
  }
  // The model can memorize the data. If its loss is not below that of guessing,
  // the measured steps did not train it.
  ASSIGN_OR_RETURN(const double loss, training->Loss());
  if (!(loss < 0.5 * std::log(10.0))) {
    return absl::InternalError(
        absl::StrCat(what.name, " did not train: its loss is still ", loss));
  }
  Report(measurement);
  return absl::OkStatus();
}

absl::Status Run() {
  ASSIGN_OR_RETURN(
      const auto peer,
      PeerProcess::Start({absl::GetFlag(FLAGS_python),
                          "benchmarks/peers/local_training_torch.py"},
                         "install the peer with: apt-get install python3-torch "
                         "libopenblas0-pthread"));
  if (peer->description().find("openblas") == std::string::npos) {
    return absl::FailedPreconditionError(
        absl::StrCat("PyTorch runs on ", peer->description(),
                     ", which is too slow to compare with: apt-get install "
                     "libopenblas0-pthread"));
  }
  std::fprintf(stderr, "peer: PyTorch %s, one thread\n",
               peer->description().c_str());
  const bool quick = absl::GetFlag(FLAGS_quick);
  const int turns = quick ? 9 : 31;
  const double turn_seconds = quick ? 0.7 : 1.0;
  for (const Case& what : Cases()) {
    const std::string only = absl::GetFlag(FLAGS_only);
    if (!only.empty() && only != what.name) continue;
    RETURN_IF_ERROR(Measure(what, *peer, turns, turn_seconds));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace hawser::benchmarks

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("Measures the training speed of one process.");
  absl::ParseCommandLine(argc, argv);
  const absl::Status status = hawser::benchmarks::Run();
  if (!status.ok()) {
    std::fprintf(stderr, "local_training: %s\n",
                 std::string(status.message()).c_str());
    return 1;
  }
  return 0;
}
