#include "examples/mnist_ps/local.h"

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "async/status_macros.h"
#include "autograd/backward.h"
#include "autograd/variable.h"
#include "examples/mnist_ps/digits.h"
#include "examples/mnist_ps/model.h"
#include "examples/mnist_ps/training_loop.h"
#include "optim/optimizer.h"

namespace hawser::examples::mnist_ps {
namespace {

class LocalLearner : public Learner {
 public:
  static absl::StatusOr<std::unique_ptr<LocalLearner>> Create(
      const Options& options) {
    ASSIGN_OR_RETURN(std::vector<Tensor> parameters,
                     InitialParameters(options));
    for (const Tensor& parameter : parameters) {
      RETURN_IF_ERROR(autograd::SetRequiresGrad(parameter));
    }
    ASSIGN_OR_RETURN(auto optimizer,
                     optim::Optimizer::Create(parameters, options.rule));
    return std::unique_ptr<LocalLearner>(
        new LocalLearner(std::move(parameters), std::move(optimizer)));
  }

  absl::StatusOr<double> Step(const data::Batch& batch) override {
    optimizer_->ZeroGrad();
    ASSIGN_OR_RETURN(const Tensor loss, Loss(parameters_, batch));
    RETURN_IF_ERROR(autograd::Backward(loss));
    RETURN_IF_ERROR(optimizer_->Step());
    return loss.item<float>();
  }

  absl::Status SetLearningRate(double learning_rate) override {
    return optimizer_->SetOption("lr", learning_rate);
  }

  absl::StatusOr<std::vector<Tensor>> Parameters() override {
    return parameters_;
  }

 private:
  LocalLearner(std::vector<Tensor> parameters,
               std::unique_ptr<optim::Optimizer> optimizer)
      : parameters_(std::move(parameters)), optimizer_(std::move(optimizer)) {}

  std::vector<Tensor> parameters_;
  std::unique_ptr<optim::Optimizer> optimizer_;
};

}  // namespace

absl::Status RunLocal(const Options& options) {
  ASSIGN_OR_RETURN(const data::DigitSplit digits, LoadDigits(options));
  ASSIGN_OR_RETURN(const auto learner, LocalLearner::Create(options));
  const auto start = std::chrono::steady_clock::now();
  ASSIGN_OR_RETURN(const TrainingSummary summary,
                   Train(*learner, digits.train, options, 0, 1, true));
  const std::chrono::duration<double> elapsed =
      std::chrono::steady_clock::now() - start;
  ASSIGN_OR_RETURN(const std::vector<Tensor> parameters, learner->Parameters());
  ASSIGN_OR_RETURN(const double accuracy, Accuracy(parameters, digits.test));
  if (!options.save_path.empty()) {
    RETURN_IF_ERROR(SaveParameters(options.save_path, parameters));
  }
  PrintResult(accuracy, summary.final_loss,
              static_cast<double>(summary.samples) / elapsed.count());
  return absl::OkStatus();
}

}  // namespace hawser::examples::mnist_ps
