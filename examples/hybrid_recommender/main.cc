// A recommender that is trained in two ways at once. The embeddings are rows of
// a table on servers; the layers are on all trainers, which average their
// gradients:
//
//   ./bazelw run //examples/hybrid_recommender
//
// README.md in this folder describes the options.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/flags/flag.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/clock.h"
#include "async/status_macros.h"
#include "autograd/backward.h"
#include "autograd/grad_mode.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/join.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/view.h"
#include "collectives/agent/group_service.h"
#include "collectives/process_group.h"
#include "data/metrics.h"
#include "data/tabular/sample_batches.h"
#include "data/tabular/synthetic_clicks.h"
#include "launch/job/job_flags.h"
#include "launch/job/job_member.h"
#include "launch/job/job_program.h"
#include "launch/job/role_group.h"
#include "nlohmann/json.hpp"
#include "nn/linear.h"
#include "nn/loss.h"
#include "nn/sequential.h"
#include "optim/adagrad.h"
#include "optim/adam.h"
#include "optim/optimizer.h"
#include "parallel/distributed_data_parallel.h"
#include "ps/embedding.h"
#include "ps/table.h"
#include "ps/table_service.h"
#include "telemetry/progress_line.h"
#include "tensor/ops/random.h"
#include "tensor/tensor.h"

ABSL_FLAG(int, servers, 1, "Number of processes that hold the embeddings.");
ABSL_FLAG(int, trainers, 2, "Number of processes that compute gradients.");
ABSL_FLAG(int64_t, samples, 200'000,
          "Number of clicks to draw; each tenth is for testing.");
ABSL_FLAG(int64_t, epochs, 3, "Passes over the training samples.");
ABSL_FLAG(int64_t, batch_size, 256, "Samples per step and trainer.");
ABSL_FLAG(int64_t, embedding_width, 8, "Numbers in each embedding.");
ABSL_FLAG(double, embedding_lr, 0.1, "Learning rate of the embeddings.");
ABSL_FLAG(double, layer_lr, 0.001, "Learning rate of the layers.");
ABSL_FLAG(uint64_t, seed, 1,
          "Of the samples, their order and the initial values.");
ABSL_FLAG(std::string, gradient_interface, "",
          "Network interface through which trainers of other machines send "
          "gradients to this one. The connections are neither encrypted nor "
          "authenticated.");

namespace hawser::examples::hybrid_recommender {
namespace {

using collectives::ProcessGroup;
using data::SampleBatch;
using data::SampleBatches;
using launch::JobMember;
using launch::StopSignals;
using tensor::Tensor;

constexpr char kServer[] = "server";
constexpr char kTrainer[] = "trainer";
constexpr int64_t kTestEvery = 10;
constexpr int64_t kLayerWidths[] = {64, 32, 1};

absl::StatusOr<std::vector<launch::JobRole>> ReadFlags() {
  const int servers = absl::GetFlag(FLAGS_servers);
  const int trainers = absl::GetFlag(FLAGS_trainers);
  const auto check = [](const char* flag, int64_t value, int64_t least = 1) {
    return launch::CheckAtLeast(flag, value, least);
  };
  RETURN_IF_ERROR(check("servers", servers));
  RETURN_IF_ERROR(check("trainers", trainers));
  // A sample for each trainer, and some of each label for testing.
  RETURN_IF_ERROR(check("samples", absl::GetFlag(FLAGS_samples),
                        1000 + 2 * int64_t{trainers}));
  RETURN_IF_ERROR(check("epochs", absl::GetFlag(FLAGS_epochs)));
  RETURN_IF_ERROR(check("batch_size", absl::GetFlag(FLAGS_batch_size)));
  RETURN_IF_ERROR(
      check("embedding_width", absl::GetFlag(FLAGS_embedding_width)));
  return std::vector<launch::JobRole>{{kServer, servers}, {kTrainer, trainers}};
}

data::SyntheticClicksOptions Clicks() {
  return {.num_samples = absl::GetFlag(FLAGS_samples),
          .seed = absl::GetFlag(FLAGS_seed)};
}

// The part of this trainer in an epoch.
data::SampleBatchesOptions TrainingPart(const ProcessGroup& group,
                                        int64_t epoch) {
  return {.batch_samples = absl::GetFlag(FLAGS_batch_size),
          .shuffle_samples = 65536,
          .seed = absl::GetFlag(FLAGS_seed) + static_cast<uint64_t>(epoch),
          .test_every = kTestEvery,
          .num_replicas = group.size(),
          .rank = group.rank()};
}

absl::StatusOr<SampleBatches> Open(const data::SampleBatchesOptions& options) {
  return SampleBatches::Create(
      std::make_unique<data::SyntheticClicks>(Clicks()), options);
}

// The sum of the products of all pairs of embeddings of a sample: half of the
// difference between the square of their sum and the sum of their squares.
//
//   embeddings  f32[n, keys, width]
//   result      f32[n, 1]
absl::StatusOr<Tensor> SumOfPairs(const Tensor& embeddings) {
  ASSIGN_OR_RETURN(const Tensor sum, autograd::Sum(embeddings, {1}));
  ASSIGN_OR_RETURN(const Tensor square_of_sum, autograd::Square(sum));
  ASSIGN_OR_RETURN(const Tensor squares, autograd::Square(embeddings));
  ASSIGN_OR_RETURN(const Tensor sum_of_squares, autograd::Sum(squares, {1}));
  ASSIGN_OR_RETURN(const Tensor pairs,
                   autograd::Sub(square_of_sum, sum_of_squares));
  ASSIGN_OR_RETURN(const Tensor total,
                   autograd::Sum(pairs, {1}, /*keepdim=*/true));
  return autograd::MulScalar(total, 0.5);
}

// A logit for each sample: the products of all pairs of its embeddings, and a
// perceptron of its embeddings and numbers (DeepFM: Guo et al., IJCAI 2017).
class Model {
 public:
  static absl::StatusOr<Model> Create(rpc::Agent& agent,
                                      const std::vector<std::string>& servers) {
    const int64_t width = absl::GetFlag(FLAGS_embedding_width);
    ASSIGN_OR_RETURN(
        ps::Table table,
        ps::Table::Create(
            agent,
            {.name = "embeddings",
             .width = width,
             .rule = optim::Adagrad({.lr = absl::GetFlag(FLAGS_embedding_lr)}),
             .initializer = ps::Initializer::Normal(0, 0.1),
             .seed = absl::GetFlag(FLAGS_seed)},
            servers));
    Model model(std::move(table));
    const data::SyntheticClicksOptions clicks = Clicks();
    tensor::Generator generator(absl::GetFlag(FLAGS_seed));
    int64_t inputs = clicks.num_fields * width + clicks.num_dense;
    for (const int64_t outputs : kLayerWidths) {
      const bool last = outputs == 1;
      ASSIGN_OR_RETURN(
          auto layer,
          nn::Linear::Create({.in_features = inputs,
                              .out_features = outputs,
                              .activation = last ? tensor::Activation::kNone
                                                 : tensor::Activation::kRelu},
                             generator));
      model.layers_->Append(std::move(layer));
      inputs = outputs;
    }
    return model;
  }

  nn::Sequential& layers() { return *layers_; }

  absl::StatusOr<Tensor> Forward(const SampleBatch& batch) {
    ASSIGN_OR_RETURN(const Tensor rows, embedding_.Forward(batch.keys));
    ASSIGN_OR_RETURN(const Tensor values, batch.values.Unsqueeze(2));
    ASSIGN_OR_RETURN(const Tensor weighted, autograd::Mul(rows, values));
    ASSIGN_OR_RETURN(const Tensor flat,
                     autograd::Reshape(weighted, {batch.size(), -1}));
    const Tensor parts[] = {flat, batch.dense};
    ASSIGN_OR_RETURN(const Tensor inputs, autograd::Concat(parts, 1));
    ASSIGN_OR_RETURN(const Tensor deep, layers_->Forward(inputs));
    ASSIGN_OR_RETURN(const Tensor pairs, SumOfPairs(weighted));
    return autograd::Add(deep, pairs);
  }

  // Waits until the servers have all gradients of the embeddings.
  absl::Status Flush() { return embedding_.Flush(); }

 private:
  explicit Model(ps::Table table)
      : embedding_(std::move(table), {.max_pushes_under_way = 4}) {}

  ps::Embedding embedding_;
  std::unique_ptr<nn::Sequential> layers_ = std::make_unique<nn::Sequential>();
};

// Trains the model; `report` is called after each step.
absl::Status TrainEpochs(
    Model& model, ProcessGroup& group,
    absl::FunctionRef<absl::Status(int64_t epoch, int64_t samples, double loss)>
        report) {
  ASSIGN_OR_RETURN(
      const auto parallel,
      parallel::DistributedDataParallel::Create(model.layers(), group));
  ASSIGN_OR_RETURN(const auto optimizer,
                   optim::Optimizer::Create(
                       model.layers().parameters(),
                       optim::Adam({.lr = absl::GetFlag(FLAGS_layer_lr)})));
  for (int64_t epoch = 0; epoch < absl::GetFlag(FLAGS_epochs); ++epoch) {
    ASSIGN_OR_RETURN(SampleBatches batches, Open(TrainingPart(group, epoch)));
    while (true) {
      ASSIGN_OR_RETURN(const std::optional<SampleBatch> batch, batches.Next());
      if (!batch.has_value()) break;
      optimizer->ZeroGrad();
      ASSIGN_OR_RETURN(
          const Tensor loss, parallel->Forward([&]() -> absl::StatusOr<Tensor> {
            ASSIGN_OR_RETURN(const Tensor logits, model.Forward(*batch));
            return nn::BceWithLogitsLoss(logits, batch->labels);
          }));
      // Averages the gradients of the layers, and pushes those of the rows.
      RETURN_IF_ERROR(autograd::Backward(loss));
      RETURN_IF_ERROR(optimizer->Step());
      ASSIGN_OR_RETURN(const float value, loss.item<float>());
      RETURN_IF_ERROR(report(epoch + 1, batch->size(), value));
    }
  }
  RETURN_IF_ERROR(model.Flush());
  return group.Barrier();
}

// Tests the model, and prints the result of the run as one line of JSON.
absl::Status Report(Model& model, int64_t samples, double samples_per_second) {
  const autograd::NoGradGuard no_grad;
  ASSIGN_OR_RETURN(
      SampleBatches batches,
      Open({.batch_samples = 4096, .test_every = kTestEvery, .test = true}));
  std::vector<float> scores;
  std::vector<float> ideal;
  std::vector<float> labels;
  const auto append = [](std::vector<float>& to,
                         const std::vector<float>& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  while (true) {
    ASSIGN_OR_RETURN(const std::optional<SampleBatch> batch, batches.Next());
    if (!batch.has_value()) break;
    ASSIGN_OR_RETURN(const Tensor logits, model.Forward(*batch));
    append(scores, logits.ToVector<float>());
    append(ideal, batch->ideal);
    append(labels, batch->labels.ToVector<float>());
  }
  ASSIGN_OR_RETURN(const double auc, data::Auc(scores, labels));
  ASSIGN_OR_RETURN(const double best, data::Auc(ideal, labels));
  nlohmann::ordered_json result;
  result["example"] = "hybrid_recommender";
  result["test_auc"] = std::round(auc * 1e6) / 1e6;
  result["best_auc"] = std::round(best * 1e6) / 1e6;
  result["epochs"] = absl::GetFlag(FLAGS_epochs);
  result["samples"] = samples;
  result["samples_per_s"] = std::llround(samples_per_second);
  std::printf("%s\n", result.dump().c_str());
  std::fflush(stdout);
  return absl::OkStatus();
}

absl::Status Train(JobMember& member, StopSignals& stop) {
  // A lost server ends the job, and the look-ups with it.
  const JobMember::CallScope scope(member);
  const launch::JobOptions& job = member.options();
  const bool leads = job.index == 0;
  const std::string interface = absl::GetFlag(FLAGS_gradient_interface);
  ASSIGN_OR_RETURN(
      ProcessGroup* const group,
      launch::MakeRoleGroup(
          member, {.gloo = {.interface = interface,
                            .allow_insecure_network = !interface.empty()}}));
  ASSIGN_OR_RETURN(Model model,
                   Model::Create(member.agent(), job.workers(kServer)));
  async::RealClock clock;
  telemetry::ProgressLine line(stderr, &clock,
                               telemetry::ProgressLine::OptionsFor(stderr));
  stop.SetLine(&line);
  const absl::Cleanup unset = [&stop] { stop.SetLine(nullptr); };
  const data::SampleBatchesOptions part = TrainingPart(*group, 0);
  const int64_t steps_per_epoch =
      (data::NumChosen(absl::GetFlag(FLAGS_samples), part) +
       part.batch_samples - 1) /
      part.batch_samples;
  telemetry::Progress progress{
      .num_epochs = absl::GetFlag(FLAGS_epochs),
      .num_steps = absl::GetFlag(FLAGS_epochs) * steps_per_epoch};
  RETURN_IF_ERROR(TrainEpochs(model, *group,
                              [&](int64_t epoch, int64_t samples, double loss) {
                                ++progress.step;
                                progress.epoch = epoch;
                                progress.loss = loss;
                                progress.samples = member.AddSamples(samples);
                                if (leads) line.Update(progress);
                                return member.Check();
                              }));
  ASSIGN_OR_RETURN(const int64_t samples, member.FinishSamples());
  line.Finish();
  if (!leads) return member.WaitForEnd();
  RETURN_IF_ERROR(Report(model, samples, line.SamplesPerSecond(samples)));
  return member.EndJob();
}

// The work of a server or trainer.
absl::Status Run(const launch::JobOptions& job, StopSignals& stop) {
  std::vector<std::unique_ptr<rpc::Service>> services;
  services.push_back(std::make_unique<ps::TableService>());
  services.push_back(std::make_unique<collectives::GroupService>());
  ASSIGN_OR_RETURN(const auto member,
                   JobMember::Join(job, std::move(services)));
  return member->Leave(job.role == kTrainer ? Train(*member, stop)
                                            : member->WaitForEnd());
}

launch::UsageText Text() {
  return {.summary =
              "Trains a model that predicts clicks, with its embeddings "
              "on server processes and its layers on all trainers.",
          .commands = {"hybrid_recommender --servers=2 --trainers=3"},
          .results = {
              {"test_auc", "Of the test samples."},
              {"best_auc",
               "Of the model that generated the samples: the best that a model "
               "can reach."},
              {"epochs, samples", "Training of all trainers."},
              {"samples_per_s",
               "Training samples of all trainers per second, from the first "
               "step to the end of the last trainer. The progress line shows "
               "the same number so far."}}};
}

}  // namespace
}  // namespace hawser::examples::hybrid_recommender

int main(int argc, char** argv) {
  namespace example = hawser::examples::hybrid_recommender;
  return hawser::launch::RunJobProgram({.name = "hybrid_recommender",
                                        .usage = example::Text(),
                                        .flags_file = __FILE__,
                                        .read_flags = example::ReadFlags,
                                        .run = example::Run},
                                       argc, argv);
}
