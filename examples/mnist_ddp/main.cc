// Data-parallel training of a digit classifier. This command starts two
// processes on this machine:
//
//   ./bazelw run //examples/mnist_ddp
//
// Under a launcher, the processes that it starts train together:
//
//   hawser run --nproc-per-node=4 mnist_ddp --model=cnn
//   torchrun --nproc-per-node=4 --no-python mnist_ddp
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/clock.h"
#include "async/status_macros.h"
#include "autograd/backward.h"
#include "autograd/grad_mode.h"
#include "autograd/ops/softmax.h"
#include "collectives/process_group.h"
#include "data/labeled_images.h"
#include "data/mnist.h"
#include "data/synthetic_digits.h"
#include "launch/group/group_program.h"
#include "launch/job/training_loop.h"
#include "nlohmann/json.hpp"
#include "nn/activation.h"
#include "nn/conv2d.h"
#include "nn/flatten.h"
#include "nn/linear.h"
#include "nn/pool2d.h"
#include "nn/sequential.h"
#include "optim/lr_schedule.h"
#include "optim/optimizer.h"
#include "optim/sgd.h"
#include "parallel/communication_hooks.h"
#include "parallel/distributed_data_parallel.h"
#include "telemetry/progress_line.h"
#include "tensor/ops/random.h"
#include "tensor/ops/reduce.h"
#include "tensor/tensor.h"

ABSL_FLAG(int, processes, 2,
          "Processes to start on this machine, unless a launcher has started "
          "this one.");
ABSL_FLAG(std::string, model, "mlp",
          "mlp: a perceptron 784-128-64-10. cnn: a convolution, a pool and a "
          "linear layer.");
ABSL_FLAG(std::string, data_dir, "",
          "Directory of MNIST's IDX files, plain or gzip. Default: synthetic "
          "digits.");
ABSL_FLAG(int64_t, holdout, 0,
          "Keep the last N samples for testing. With 0, test on the t10k files "
          "or on 2000 synthetic digits.");
ABSL_FLAG(int64_t, epochs, 5, "Passes over the training samples.");
ABSL_FLAG(int64_t, batch_size, 64, "Samples per step and process.");
ABSL_FLAG(double, lr, 0.05,
          "Learning rate, which falls to nearly 0 along half a cosine.");
ABSL_FLAG(uint64_t, seed, 1, "Of initial values and the order of samples.");
ABSL_FLAG(std::string, interface, "",
          "Network interface through which processes of other machines reach "
          "this one. The connections are neither encrypted nor authenticated.");
ABSL_FLAG(std::string, compress, "none",
          "How gradients are sent: none, f16, bf16, powersgd or topk.");

namespace hawser::examples::mnist_ddp {
namespace {

using collectives::ProcessGroup;
using tensor::Tensor;

constexpr int64_t kSide = 28;

absl::StatusOr<std::unique_ptr<nn::Linear>> MakeLinear(
    int64_t in, int64_t out, tensor::Activation activation,
    tensor::Generator& generator) {
  return nn::Linear::Create(
      {.in_features = in, .out_features = out, .activation = activation},
      generator);
}

absl::StatusOr<std::unique_ptr<nn::Sequential>> MakeMlp(
    tensor::Generator& generator) {
  constexpr int64_t kWidths[] = {kSide * kSide, 128, 64, 10};
  auto model = std::make_unique<nn::Sequential>();
  for (int i = 0; i < 3; ++i) {
    ASSIGN_OR_RETURN(auto layer, MakeLinear(kWidths[i], kWidths[i + 1],
                                            i < 2 ? tensor::Activation::kRelu
                                                  : tensor::Activation::kNone,
                                            generator));
    model->Append(absl::StrCat("fc", i + 1), std::move(layer));
  }
  return model;
}

absl::StatusOr<std::unique_ptr<nn::Sequential>> MakeCnn(
    tensor::Generator& generator) {
  constexpr int64_t kChannels = 8;
  constexpr int64_t kPooled = 13;  // (28 - 3 + 1) / 2.
  auto model = std::make_unique<nn::Sequential>();
  ASSIGN_OR_RETURN(
      auto convolution,
      nn::Conv2d::Create(
          {.in_channels = 1, .out_channels = kChannels, .kernel = {3, 3}},
          generator));
  model->Append("conv", std::move(convolution));
  model->Append("relu", std::make_unique<nn::ReLU>());
  model->Append("pool", std::make_unique<nn::MaxPool2d>(tensor::Pool2dOptions{
                            .kernel = {2, 2}, .stride = {2, 2}}));
  model->Append("flatten", std::make_unique<nn::Flatten>());
  ASSIGN_OR_RETURN(auto linear,
                   MakeLinear(kChannels * kPooled * kPooled, 10,
                              tensor::Activation::kNone, generator));
  model->Append("fc", std::move(linear));
  return model;
}

// A classifier of pixels, f32[n, 784].
class Classifier {
 public:
  static absl::StatusOr<Classifier> Create() {
    tensor::Generator generator(absl::GetFlag(FLAGS_seed));
    const std::string model = absl::GetFlag(FLAGS_model);
    if (model != "mlp" && model != "cnn") {
      return absl::InvalidArgumentError(
          absl::StrCat("--model=", model, ": must be mlp or cnn"));
    }
    Classifier classifier;
    classifier.is_cnn_ = model == "cnn";
    ASSIGN_OR_RETURN(classifier.layers_, classifier.is_cnn_
                                             ? MakeCnn(generator)
                                             : MakeMlp(generator));
    return classifier;
  }

  nn::Sequential& layers() { return *layers_; }

  absl::StatusOr<Tensor> Forward(const Tensor& pixels) const {
    if (!is_cnn_) return layers_->Forward(pixels);
    ASSIGN_OR_RETURN(const Tensor images,
                     pixels.Reshape({pixels.dim(0), 1, kSide, kSide}));
    return layers_->Forward(images);
  }

 private:
  std::unique_ptr<nn::Sequential> layers_;
  bool is_cnn_ = false;
};

absl::StatusOr<data::DigitSplit> LoadDigits() {
  const std::string directory = absl::GetFlag(FLAGS_data_dir);
  const int64_t holdout = absl::GetFlag(FLAGS_holdout);
  if (!directory.empty()) return data::LoadMnist(directory, holdout);
  return data::HoldOut(data::DrawDigits(/*count=*/12000, /*seed=*/20),
                       holdout > 0 ? holdout : 2000);
}

absl::StatusOr<parallel::CommunicationHook> Hook() {
  const std::string name = absl::GetFlag(FLAGS_compress);
  if (name == "none") return parallel::AllReduceHook();
  if (name == "f16") return parallel::CompressHook(tensor::DType::kF16);
  if (name == "bf16") return parallel::CompressHook(tensor::DType::kBF16);
  if (name == "powersgd") return parallel::PowerSgdHook({.rank = 4});
  if (name == "topk") return parallel::TopKHook(0.05);
  return absl::InvalidArgumentError(absl::StrCat(
      "--compress=", name, ": must be none, f16, bf16, powersgd or topk"));
}

// The fraction of the samples that the model classifies correctly. Each rank
// tests a part of them.
absl::StatusOr<double> Accuracy(const Classifier& model,
                                const data::LabeledImages& set,
                                ProcessGroup& group) {
  const autograd::NoGradGuard no_grad;
  constexpr int64_t kBatchSamples = 500;
  const int64_t step = kBatchSamples * group.size();
  int64_t right = 0;
  for (int64_t begin = kBatchSamples * group.rank(); begin < set.count();
       begin += step) {
    const int64_t end = std::min(set.count(), begin + kBatchSamples);
    std::vector<int64_t> indices(static_cast<size_t>(end - begin));
    std::iota(indices.begin(), indices.end(), begin);
    ASSIGN_OR_RETURN(const data::Batch batch, data::GatherBatch(set, indices));
    ASSIGN_OR_RETURN(const Tensor logits, model.Forward(batch.pixels));
    ASSIGN_OR_RETURN(const Tensor guesses, tensor::ArgMax(logits, 1));
    const std::vector<int64_t> guess = guesses.ToVector<int64_t>();
    const std::vector<int64_t> label = batch.labels.ToVector<int64_t>();
    for (size_t i = 0; i < guess.size(); ++i) right += guess[i] == label[i];
  }
  const Tensor total = Tensor::FromVector<int64_t>({right}, {1});
  RETURN_IF_ERROR(group.AllReduce(total));
  ASSIGN_OR_RETURN(const int64_t all, total.item<int64_t>());
  return static_cast<double>(all) / static_cast<double>(set.count());
}

// Prints the result of the run as one line of JSON.
void PrintResult(double accuracy, double loss, double samples_per_second) {
  nlohmann::ordered_json result;
  result["example"] = "mnist_ddp";
  result["test_accuracy"] = accuracy;
  result["last_loss"] = std::round(loss * 1e6) / 1e6;
  result["samples_per_s"] = std::llround(samples_per_second);
  std::printf("%s\n", result.dump().c_str());
  std::fflush(stdout);
}

absl::Status Train(ProcessGroup& group) {
  ASSIGN_OR_RETURN(const data::DigitSplit digits, LoadDigits());
  ASSIGN_OR_RETURN(Classifier model, Classifier::Create());
  ASSIGN_OR_RETURN(parallel::CommunicationHook hook, Hook());
  const double lr = absl::GetFlag(FLAGS_lr);
  ASSIGN_OR_RETURN(
      const auto optimizer,
      optim::Optimizer::Create(model.layers().parameters(),
                               optim::Sgd({.lr = lr, .momentum = 0.9})));
  ASSIGN_OR_RETURN(const auto parallel,
                   parallel::DistributedDataParallel::Create(
                       model.layers(), group, {.hook = std::move(hook)}));
  launch::TrainingLoop loop{.dataset_samples = digits.train.count(),
                            .num_epochs = absl::GetFlag(FLAGS_epochs),
                            .batch_samples = absl::GetFlag(FLAGS_batch_size),
                            .seed = absl::GetFlag(FLAGS_seed),
                            .trainer = group.rank(),
                            .num_trainers = group.size(),
                            .learning_rate = lr};
  ASSIGN_OR_RETURN(loop.schedule,
                   optim::CosineAnnealingLr({.period = loop.num_epochs}));
  double last_loss = 0;
  data::Batch batch;
  loop.load = [&](std::span<const int64_t> samples) -> absl::Status {
    ASSIGN_OR_RETURN(batch, data::GatherBatch(digits.train, samples));
    return absl::OkStatus();
  };
  loop.step = [&](double learning_rate) -> absl::StatusOr<double> {
    optimizer->ZeroGrad();
    ASSIGN_OR_RETURN(
        const Tensor loss, parallel->Forward([&]() -> absl::StatusOr<Tensor> {
          ASSIGN_OR_RETURN(const Tensor logits, model.Forward(batch.pixels));
          return autograd::SoftmaxCrossEntropy(logits, batch.labels);
        }));
    RETURN_IF_ERROR(autograd::Backward(loss));
    RETURN_IF_ERROR(optimizer->SetOption("lr", learning_rate));
    RETURN_IF_ERROR(optimizer->Step());
    ASSIGN_OR_RETURN(last_loss, loss.item<float>());
    return last_loss;
  };
  int64_t samples = 0;
  // All ranks take the same steps.
  loop.add_samples = [&](int64_t more) {
    return samples += more * group.size();
  };
  async::RealClock clock;
  telemetry::ProgressLine line(stderr, &clock,
                               telemetry::ProgressLine::OptionsFor(stderr));
  RETURN_IF_ERROR(
      launch::RunTrainingLoop(loop, group.rank() == 0 ? &line : nullptr));
  RETURN_IF_ERROR(group.Barrier());
  line.Finish();
  const double rate = line.SamplesPerSecond(samples);
  ASSIGN_OR_RETURN(const double accuracy, Accuracy(model, digits.test, group));
  if (group.rank() == 0) PrintResult(accuracy, last_loss, rate);
  return absl::OkStatus();
}

}  // namespace
}  // namespace hawser::examples::mnist_ddp

int main(int argc, char** argv) {
  namespace example = hawser::examples::mnist_ddp;
  const std::vector<std::string> command(argv, argv + argc);
  absl::SetProgramUsageMessage(
      "Trains a digit classifier on several processes, which average their "
      "gradients.");
  absl::ParseCommandLine(argc, argv);
  const std::string interface = absl::GetFlag(FLAGS_interface);
  return hawser::launch::RunGroupProgram(
      {.name = "mnist_ddp",
       .processes = absl::GetFlag(FLAGS_processes),
       .group = {.gloo = {.interface = interface,
                          .allow_insecure_network = !interface.empty()}},
       .run = example::Train},
      command);
}
