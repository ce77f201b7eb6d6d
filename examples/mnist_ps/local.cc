#include "examples/mnist_ps/local.h"

#include <cstdint>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "async/clock.h"
#include "async/status_macros.h"
#include "autograd/backward.h"
#include "autograd/variable.h"
#include "examples/mnist_ps/digits.h"
#include "examples/mnist_ps/model.h"
#include "examples/mnist_ps/saved_model.h"
#include "examples/mnist_ps/training_loop.h"
#include "optim/optimizer.h"
#include "telemetry/progress_line.h"

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

absl::Status RunLocal(const Options& options, StopSignals& stop) {
  RETURN_IF_ERROR(CheckSavePath(options.save_path));
  ASSIGN_OR_RETURN(const data::DigitSplit digits, LoadDigits(options));
  ASSIGN_OR_RETURN(const auto learner, LocalLearner::Create(options));
  async::RealClock clock;
  telemetry::ProgressLine line(stderr, &clock,
                               telemetry::ProgressLine::OptionsFor(stderr));
  stop.SetLine(&line);
  const absl::Cleanup unset = [&stop] { stop.SetLine(nullptr); };
  int64_t total = 0;
  const auto count = [&total](int64_t samples) { return total += samples; };
  RETURN_IF_ERROR(Train(*learner, digits.train, options, /*trainer=*/0,
                        /*num_trainers=*/1, count, &line));
  line.Finish();
  const double samples_per_second = line.SamplesPerSecond(total);
  ASSIGN_OR_RETURN(const std::vector<Tensor> parameters, learner->Parameters());
  const absl::Status saved = SaveModel(options.save_path, parameters);
  ASSIGN_OR_RETURN(const Evaluation evaluation,
                   Evaluate(parameters, digits.test));
  PrintResult(evaluation, samples_per_second);
  return saved;
}

}  // namespace hawser::examples::mnist_ps
