// Training of sparse models on servers.

#ifndef HAWSER_PS_TRAINING_SPARSE_TRAINER_H_
#define HAWSER_PS_TRAINING_SPARSE_TRAINER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "data/tabular/sample_batches.h"
#include "ps/embedding.h"
#include "ps/parameter_set.h"
#include "ps/storage/consistency.h"
#include "ps/table.h"
#include "ps/training/sparse_model.h"
#include "ps/worker_clock.h"
#include "tensor/tensor.h"

namespace hawser::rpc {
class Agent;
}  // namespace hawser::rpc

namespace hawser::ps {

struct SparseTrainerOptions {
  // Workers that hold the tables.
  std::vector<std::string> servers = {};
  // As EmbeddingOptions::max_pushes_under_way.
  int max_pushes_under_way = 4;
  // Of all tables. Unless it is asynchronous, each step is a clock, and rows
  // are looked up when the step before has ended.
  Consistency consistency = {};
  // Number of trainers, as JoinOptions::num_workers.
  int num_trainers = 1;
  // If it is set, the schedules of all tables go by the steps of this trainer,
  // of which the first has this number, as PushOptions::step. For a trainer
  // that goes on after Restore: the number of steps before.
  std::optional<int64_t> first_step = std::nullopt;
};

// Predictions for samples, in their order.
struct Predictions {
  std::vector<float> predictions;
  std::vector<float> labels;
  // As in data::Samples.
  std::vector<float> ideal;
};

// One trainer of a model on servers. Any number of trainers may train the same
// model. They wait for each other as the consistency demands; all must then
// make the same number of steps. With asynchronous tables, each step looks up
// the rows of the next batch while it computes.
//
// Thread-compatible. Errors are those of Table, Embedding, ParameterSet and the
// model.
class SparseTrainer {
 public:
  // Creates the model's tables on the servers, unless they exist, and the table
  // "dense" for its dense parameters. The agent
  // needs a TableService. Agent and model must outlive the trainer.
  static absl::StatusOr<std::unique_ptr<SparseTrainer>> Create(
      rpc::Agent& agent, SparseModel& model,
      const SparseTrainerOptions& options);

  // The same from a snapshot, onto any number of servers; replaces tables that
  // exist. Called by one trainer, before the others call Create.
  //
  // kInvalidArgument: a table of the snapshot is not described as the model's.
  static absl::StatusOr<std::unique_ptr<SparseTrainer>> Restore(
      rpc::Agent& agent, SparseModel& model,
      const SparseTrainerOptions& options, const std::string& snapshot);

  // Trains on all of `batches`. `report` is called after each step with the
  // number of its samples and its loss; an error that it returns ends the
  // training. Returns once the servers have applied all updates. The first call
  // joins the clock of the tables, if they have one.
  absl::Status Train(data::SampleBatches batches,
                     absl::FunctionRef<absl::Status(int64_t, double)> report);

  // Leaves the clock of the tables: other trainers no longer wait for this one.
  // Does nothing if it has not joined.
  absl::Status Leave();

  // Returns the predictions for all of `batches`, without creating rows. Call
  // Leave before.
  absl::StatusOr<Predictions> Predict(data::SampleBatches batches);

  // Writes all tables to the snapshot directories of the servers, as
  // Table::Save.
  absl::Status Save(const std::string& snapshot,
                    const SaveOptions& options = {}) const;

 private:
  // A batch whose rows are on their way.
  struct Lookup {
    data::SampleBatch batch;
    std::vector<Embedding::Prefetched> rows;
  };

  SparseTrainer(SparseModel& model, const SparseTrainerOptions& options,
                std::vector<Embedding> embeddings,
                std::unique_ptr<ParameterSet> dense)
      : model_(model),
        options_(options),
        step_(options.first_step),
        embeddings_(std::move(embeddings)),
        dense_(std::move(dense)) {}

  absl::Status JoinClock();
  // Updates the model by the gradients of a step, and ends the step.
  absl::Status EndStep();
  // Begins the look-ups of the next batch, if there is one.
  absl::StatusOr<std::optional<Lookup>> NextLookup(
      data::SampleBatches& batches);
  // Waits for the rows of `lookup`.
  absl::StatusOr<std::vector<Tensor>> TakeRows(Lookup& lookup);
  // Waits until the servers have applied the updates of the rows.
  absl::Status Flush();

  SparseModel& model_;
  const SparseTrainerOptions options_;
  // The present one, if the tables are told of it.
  std::optional<int64_t> step_;
  // For each table of the model.
  std::vector<Embedding> embeddings_;
  // Null if the model has no dense parameters.
  const std::unique_ptr<ParameterSet> dense_;
  // Empty before the training, and with asynchronous tables.
  std::optional<WorkerClock> clock_;
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_TRAINING_SPARSE_TRAINER_H_
