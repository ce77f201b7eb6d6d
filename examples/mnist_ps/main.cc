// Training of a digit classifier whose parameters are stored on server
// processes. This command starts one server and two trainers on this machine:
//
//   ./bazelw run //examples/mnist_ps
//
// README.md in this folder describes the options.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/clock.h"
#include "async/status_macros.h"
#include "data/labeled_images.h"
#include "data/mnist.h"
#include "data/synthetic_digits.h"
#include "examples/mnist_ps/model.h"
#include "fs/output_file.h"
#include "launch/job/job_flags.h"
#include "launch/job/job_member.h"
#include "launch/job/job_program.h"
#include "launch/job/training_loop.h"
#include "nlohmann/json.hpp"
#include "nn/module_file.h"
#include "nn/sequential.h"
#include "optim/lr_schedule.h"
#include "optim/make_update_rule.h"
#include "optim/optimizer.h"
#include "optim/rule_spec.h"
#include "optim/sgd.h"
#include "ps/parameter_set.h"
#include "ps/table_service.h"
#include "telemetry/progress_line.h"

ABSL_FLAG(int, servers, 1, "Number of processes that store the parameters.");
ABSL_FLAG(int, trainers, 2, "Number of processes that compute gradients.");
ABSL_FLAG(bool, local, false,
          "Train the same model in this process, without servers.");
ABSL_FLAG(std::string, data_dir, "",
          "Directory of MNIST's IDX files, plain or gzip. Default: synthetic "
          "digits.");
ABSL_FLAG(int64_t, holdout, 0,
          "Keep the last N samples for testing. With 0, test on the t10k files "
          "or on 2000 synthetic digits.");
ABSL_FLAG(int64_t, epochs, 5, "Passes over the training samples.");
ABSL_FLAG(int64_t, batch_size, 64, "Samples per step and trainer.");
ABSL_FLAG(std::string, optimizer, "SGD(lr=0.05,momentum=0.9)",
          "Update rule and its options, such as Adam(lr=0.001). The learning "
          "rate falls from lr to nearly 0 along half a cosine.");
ABSL_FLAG(uint64_t, seed, 1,
          "Seed of a --deterministic run, and of processes started with "
          "--role, which must all have the same seed.");
ABSL_FLAG(bool, deterministic, false,
          "Derive initial values and the order of samples from --seed. With "
          "one trainer, runs give equal results; the updates of several "
          "trainers interleave in any order.");
ABSL_FLAG(std::string, init, "",
          "Start from the parameters in this safetensors file.");
ABSL_FLAG(std::string, save, "",
          "Write the trained parameters to this safetensors file.");
ABSL_FLAG(int64_t, log_every, 0,
          "Print the loss of every Nth step with all digits. 0: never.");

namespace hawser::examples::mnist_ps {
namespace {

using launch::JobMember;
using launch::JobOptions;
using launch::StopSignals;
using launch::TrainingLoop;
using Roles = std::vector<launch::JobRole>;

absl::StatusOr<std::unique_ptr<optim::UpdateRule>> Rule() {
  const std::string text = absl::GetFlag(FLAGS_optimizer);
  absl::StatusOr<optim::RuleSpec> spec = optim::ParseRuleSpec(text);
  auto rule = spec.ok() ? optim::MakeUpdateRule(*spec) : spec.status();
  if (rule.ok()) return rule;
  return absl::InvalidArgumentError(
      absl::StrCat("--optimizer=", text, ": ", rule.status().message()));
}

absl::StatusOr<Roles> ReadFlags() {
  const int servers = absl::GetFlag(FLAGS_servers);
  const int trainers = absl::GetFlag(FLAGS_trainers);
  using launch::CheckAtLeast;
  RETURN_IF_ERROR(CheckAtLeast("servers", servers, 1));
  RETURN_IF_ERROR(CheckAtLeast("trainers", trainers, 1));
  RETURN_IF_ERROR(CheckAtLeast("epochs", absl::GetFlag(FLAGS_epochs), 1));
  RETURN_IF_ERROR(
      CheckAtLeast("batch_size", absl::GetFlag(FLAGS_batch_size), 1));
  RETURN_IF_ERROR(CheckAtLeast("holdout", absl::GetFlag(FLAGS_holdout), 0));
  RETURN_IF_ERROR(CheckAtLeast("log_every", absl::GetFlag(FLAGS_log_every), 0));
  RETURN_IF_ERROR(Rule());
  if (absl::GetFlag(FLAGS_local)) return Roles();
  return Roles{{"server", servers}, {"trainer", trainers}};
}

// Replaces the seed of a run that is not deterministic.
uint64_t DrawSeed() {
  if (!absl::GetFlag(FLAGS_deterministic)) {
    absl::SetFlag(&FLAGS_seed, std::random_device()());
  }
  return absl::GetFlag(FLAGS_seed);
}

// Synthetic digits do not depend on the seed: all processes have the same ones.
absl::StatusOr<data::DigitSplit> LoadDigits() {
  const std::string directory = absl::GetFlag(FLAGS_data_dir);
  const int64_t holdout = absl::GetFlag(FLAGS_holdout);
  if (!directory.empty()) return data::LoadMnist(directory, holdout);
  return data::HoldOut(data::DrawDigits(/*count=*/12000, /*seed=*/20),
                       holdout > 0 ? holdout : 2000);
}

absl::StatusOr<std::unique_ptr<nn::Sequential>> NewModel() {
  return MakeModel(absl::GetFlag(FLAGS_seed), absl::GetFlag(FLAGS_init));
}

fs::OutputFile SavedModel() {
  return fs::OutputFile("save", absl::GetFlag(FLAGS_save), "the model");
}

// Checks the inputs before the processes of a job start.
absl::Status CheckInputs() {
  RETURN_IF_ERROR(SavedModel().Check());
  RETURN_IF_ERROR(LoadDigits());
  return NewModel().status();
}

// Prints the result of the run as one line of JSON.
void PrintResult(const Evaluation& evaluation, double samples_per_second) {
  nlohmann::ordered_json result;
  result["example"] = "mnist_ps";
  result["test_accuracy"] = evaluation.accuracy;
  result["final_loss"] = std::round(evaluation.loss * 1e6) / 1e6;
  result["samples_per_s"] = std::llround(samples_per_second);
  std::printf("%s\n", result.dump().c_str());
  std::fflush(stdout);
}

// A loop whose steps leave gradients at the parameters of `model`, which
// `update` applies, or begins to apply. The learning rate falls along half a
// cosine, epoch by epoch, so that the model converges.
absl::StatusOr<TrainingLoop> NewLoop(
    nn::Sequential& model, const data::LabeledImages& train,
    std::function<absl::Status(double learning_rate)> update) {
  ASSIGN_OR_RETURN(const auto rule, Rule());
  TrainingLoop loop{.dataset_samples = train.count(),
                    .num_epochs = absl::GetFlag(FLAGS_epochs),
                    .batch_samples = absl::GetFlag(FLAGS_batch_size),
                    .seed = absl::GetFlag(FLAGS_seed),
                    .learning_rate = rule->learning_rate(),
                    .log_every = absl::GetFlag(FLAGS_log_every)};
  ASSIGN_OR_RETURN(loop.schedule,
                   optim::CosineAnnealingLr({.period = loop.num_epochs}));
  const auto batch = std::make_shared<data::Batch>();
  loop.load = [&train, batch](auto samples) -> absl::Status {
    ASSIGN_OR_RETURN(*batch, data::GatherBatch(train, samples));
    return absl::OkStatus();
  };
  loop.step = [&model, batch, update = std::move(update)](
                  double learning_rate) -> absl::StatusOr<double> {
    model.ZeroGrad();
    ASSIGN_OR_RETURN(const double loss, ForwardAndBackward(model, *batch));
    RETURN_IF_ERROR(update(learning_rate));
    return loss;
  };
  return loop;
}

// Trains with a progress line, and saves, tests and reports the model. `finish`
// waits for the other trainers, brings their updates to the model, and returns
// the samples of all. Sets `saved` to the outcome of saving, whose failure does
// not disturb other processes.
absl::Status Lead(const TrainingLoop& loop, const nn::Sequential& model,
                  const data::LabeledImages& test,
                  const std::function<absl::StatusOr<int64_t>()>& finish,
                  StopSignals& stop, absl::Status& saved) {
  async::RealClock clock;
  telemetry::ProgressLine line(stderr, &clock,
                               telemetry::ProgressLine::OptionsFor(stderr));
  stop.SetLine(&line);
  const absl::Cleanup unset = [&stop] { stop.SetLine(nullptr); };
  RETURN_IF_ERROR(RunTrainingLoop(loop, &line));
  line.Finish();
  ASSIGN_OR_RETURN(const int64_t samples, finish());
  const double samples_per_second = line.SamplesPerSecond(samples);
  saved = SavedModel().Write(
      [&](const std::string& path) { return nn::SaveModule(model, path); });
  ASSIGN_OR_RETURN(const Evaluation evaluation, Evaluate(model, test));
  PrintResult(evaluation, samples_per_second);
  return absl::OkStatus();
}

absl::Status RunLocal(StopSignals& stop) {
  DrawSeed();
  RETURN_IF_ERROR(SavedModel().Check());
  ASSIGN_OR_RETURN(const data::DigitSplit digits, LoadDigits());
  ASSIGN_OR_RETURN(const auto model, NewModel());
  ASSIGN_OR_RETURN(const auto rule, Rule());
  ASSIGN_OR_RETURN(const auto optimizer,
                   optim::Optimizer::Create(model->parameters(), rule->spec()));
  const auto update = [&](double learning_rate) -> absl::Status {
    RETURN_IF_ERROR(optimizer->SetOption("lr", learning_rate));
    return optimizer->Step();
  };
  ASSIGN_OR_RETURN(const auto loop, NewLoop(*model, digits.train, update));
  const auto finish = [&] { return loop.dataset_samples * loop.num_epochs; };
  absl::Status saved;
  RETURN_IF_ERROR(Lead(loop, *model, digits.test, finish, stop, saved));
  return saved;
}

// With SGD, each of several trainers has a momentum of its own.
ps::ParameterSetOptions OptionsFor(const optim::RuleSpec& rule, int trainers) {
  const double momentum = rule.Find("momentum").value_or(0);
  const double rate = *rule.Find("lr");
  if (trainers == 1 || momentum >= 1 ||
      rule != optim::Sgd({.lr = rate, .momentum = momentum})) {
    return {.rule = rule};
  }
  return {.rule = optim::Sgd({.lr = rate}), .trainer_momentum = momentum};
}

absl::Status Train(JobMember& member, const data::DigitSplit& digits,
                   StopSignals& stop, absl::Status& saved) {
  const JobOptions& job = member.options();
  ASSIGN_OR_RETURN(const auto model, NewModel());
  ASSIGN_OR_RETURN(const auto rule, Rule());
  ASSIGN_OR_RETURN(
      const auto parameters,
      ps::ParameterSet::Create(member.agent(), *model,
                               OptionsFor(rule->spec(), job.count("trainer")),
                               job.workers("server")));
  async::Future<void> updated;
  const auto update = [&](double learning_rate) {
    updated = parameters->StepAsync({.learning_rate = learning_rate});
    return absl::OkStatus();
  };
  ASSIGN_OR_RETURN(TrainingLoop loop, NewLoop(*model, digits.train, update));
  loop.wait = [&] { return member.WaitFor(std::move(updated)); };
  loop.trainer = job.index;
  loop.num_trainers = job.count("trainer");
  loop.add_samples = [&](int64_t more) { return member.AddSamples(more); };
  if (job.index > 0) {
    RETURN_IF_ERROR(RunTrainingLoop(loop, /*line=*/nullptr));
    RETURN_IF_ERROR(member.FinishSamples());
    return member.WaitForEnd();
  }
  const auto finish = [&]() -> absl::StatusOr<int64_t> {
    ASSIGN_OR_RETURN(const int64_t samples, member.FinishSamples());
    RETURN_IF_ERROR(member.WaitFor(parameters->FetchAsync()));
    return samples;
  };
  RETURN_IF_ERROR(Lead(loop, *model, digits.test, finish, stop, saved));
  return member.EndJob();
}

// The work of this process: of a server or trainer, or all of it.
absl::Status Run(const JobOptions& job, StopSignals& stop) {
  if (job.role.empty()) return RunLocal(stop);
  const bool trains = job.role == "trainer";
  data::DigitSplit digits;
  if (trains) {
    if (job.index == 0) RETURN_IF_ERROR(SavedModel().Check());
    ASSIGN_OR_RETURN(digits, LoadDigits());
  }
  std::vector<std::unique_ptr<rpc::Service>> services;
  services.push_back(std::make_unique<ps::TableService>());
  ASSIGN_OR_RETURN(const auto member,
                   JobMember::Join(job, std::move(services)));
  absl::Status saved;
  RETURN_IF_ERROR(member->Leave(trains ? Train(*member, digits, stop, saved)
                                       : member->WaitForEnd()));
  return saved;
}

launch::UsageText Text() {
  return {
      .summary =
          "Trains a digit classifier with its parameters on server processes. "
          "Without --role or --local, starts all processes of the job on this "
          "machine.",
      .commands = {"mnist_ps --servers=2 --trainers=2",
                   "mnist_ps --local --epochs=1",
                   "mnist_ps --data_dir=DIR --holdout=2000",
                   "mnist_ps --role=server --master=127.0.0.1:29500"},
      .results = {
          {"test_accuracy",
           "Fraction of the test samples that the final model classifies "
           "correctly."},
          {"final_loss", "Mean loss of the final model over the test samples."},
          {"samples_per_s",
           "Training samples that all trainers have processed, per second from "
           "the first step to the end of the last trainer. The progress line "
           "shows the same number so far."}}};
}

}  // namespace
}  // namespace hawser::examples::mnist_ps

int main(int argc, char** argv) {
  namespace example = hawser::examples::mnist_ps;
  return hawser::launch::RunJobProgram(
      {.name = "mnist_ps",
       .usage = example::Text(),
       .flags_file = "examples/mnist_ps/main.cc",
       .read_flags = example::ReadFlags,
       .check = example::CheckInputs,
       .child_flags =
           [] {
             return std::vector<std::string>{
                 absl::StrCat("--seed=", example::DrawSeed())};
           },
       .run = example::Run},
      argc, argv);
}
