#include "ps/training/sparse_trainer.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "async/future.h"
#include "async/status_macros.h"
#include "autograd/backward.h"
#include "autograd/grad_mode.h"
#include "ps/storage/table_spec.h"
#include "ps/table.h"

namespace hawser::ps {
namespace {

Embedding EmbeddingOf(Table table, const SparseTrainerOptions& options) {
  return Embedding(std::move(table),
                   {.max_pushes_under_way = options.max_pushes_under_way});
}

std::vector<TableSpec> TablesOf(const SparseModel& model,
                                const SparseTrainerOptions& options) {
  std::vector<TableSpec> tables = model.tables();
  for (TableSpec& table : tables) table.consistency = options.consistency;
  return tables;
}

ParameterSetOptions DenseOptions(const SparseModel& model,
                                 const SparseTrainerOptions& options) {
  return {.name = "dense",
          .rule = model.dense_rule(),
          .consistency = options.consistency};
}

absl::Status CheckSpec(const Table& table, const TableSpec& expected,
                       const std::string& snapshot) {
  ASSIGN_OR_RETURN(const TableSpec spec, NormalizeTableSpec(expected));
  if (table.spec() == spec) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("table '", spec.name, "' of the snapshot '", snapshot,
                   "' has another width, rule, initializer, seed or other "
                   "setting than that of the model"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<SparseTrainer>> SparseTrainer::Create(
    rpc::Agent& agent, SparseModel& model,
    const SparseTrainerOptions& options) {
  std::vector<Embedding> embeddings;
  for (const TableSpec& spec : TablesOf(model, options)) {
    ASSIGN_OR_RETURN(Table table, Table::Create(agent, spec, options.servers));
    embeddings.push_back(EmbeddingOf(std::move(table), options));
  }
  std::unique_ptr<ParameterSet> dense;
  if (model.dense() != nullptr) {
    ASSIGN_OR_RETURN(dense, ParameterSet::Create(agent, *model.dense(),
                                                 DenseOptions(model, options),
                                                 options.servers));
  }
  return std::unique_ptr<SparseTrainer>(new SparseTrainer(
      model, options, std::move(embeddings), std::move(dense)));
}

absl::StatusOr<std::unique_ptr<SparseTrainer>> SparseTrainer::Restore(
    rpc::Agent& agent, SparseModel& model, const SparseTrainerOptions& options,
    const std::string& snapshot) {
  std::vector<Embedding> embeddings;
  for (const TableSpec& spec : TablesOf(model, options)) {
    ASSIGN_OR_RETURN(Table table, Table::Restore(agent, spec.name, snapshot,
                                                 options.servers));
    RETURN_IF_ERROR(CheckSpec(table, spec, snapshot));
    embeddings.push_back(EmbeddingOf(std::move(table), options));
  }
  std::unique_ptr<ParameterSet> dense;
  if (model.dense() != nullptr) {
    ASSIGN_OR_RETURN(dense, ParameterSet::Restore(agent, *model.dense(),
                                                  DenseOptions(model, options),
                                                  snapshot, options.servers));
  }
  return std::unique_ptr<SparseTrainer>(new SparseTrainer(
      model, options, std::move(embeddings), std::move(dense)));
}

absl::Status SparseTrainer::Train(
    data::SampleBatches batches,
    absl::FunctionRef<absl::Status(int64_t, double)> report) {
  RETURN_IF_ERROR(JoinClock());
  ASSIGN_OR_RETURN(std::optional<Lookup> lookup, NextLookup(batches));
  while (lookup.has_value()) {
    ASSIGN_OR_RETURN(const std::vector<Tensor> rows, TakeRows(*lookup));
    std::optional<Lookup> next;
    if (!clock_.has_value()) {
      ASSIGN_OR_RETURN(next, NextLookup(batches));
    }
    const data::SampleBatch& batch = lookup->batch;
    if (dense_ != nullptr) model_.dense()->ZeroGrad();
    ASSIGN_OR_RETURN(const Tensor predictions, model_.Forward(rows, batch));
    ASSIGN_OR_RETURN(const Tensor loss, model_.Loss(predictions, rows, batch));
    RETURN_IF_ERROR(autograd::Backward(loss));
    RETURN_IF_ERROR(EndStep());
    ASSIGN_OR_RETURN(const float value, loss.item<float>());
    RETURN_IF_ERROR(report(batch.size(), value));
    if (clock_.has_value()) {
      ASSIGN_OR_RETURN(next, NextLookup(batches));
    }
    lookup = std::move(next);
  }
  return Flush();
}

absl::Status SparseTrainer::JoinClock() {
  if (!options_.consistency.clocked() || clock_.has_value()) {
    return absl::OkStatus();
  }
  std::vector<Table> tables;
  if (dense_ != nullptr) tables = dense_->tables();
  for (const Embedding& embedding : embeddings_) {
    tables.push_back(embedding.table());
  }
  ASSIGN_OR_RETURN(clock_, WorkerClock::Join(
                               tables, {.num_workers = options_.num_trainers}));
  return absl::OkStatus();
}

absl::Status SparseTrainer::EndStep() {
  async::Future<void> step =
      dense_ != nullptr ? dense_->StepAsync({.step = step_})
                        : async::MakeReadyFuture<void>(absl::OkStatus());
  // Synchronous updates are applied once all trainers have ended the step.
  absl::Status status;
  if (clock_.has_value()) status = clock_->Advance();
  status.Update(std::move(step).Wait());
  if (step_.has_value()) ++*step_;
  return status;
}

absl::Status SparseTrainer::Leave() {
  if (!clock_.has_value()) return absl::OkStatus();
  const absl::Status left = clock_->Leave().Wait();
  clock_.reset();
  return left;
}

absl::StatusOr<Predictions> SparseTrainer::Predict(
    data::SampleBatches batches) {
  const autograd::NoGradGuard no_grad;
  if (dense_ != nullptr) RETURN_IF_ERROR(dense_->Fetch());
  Predictions result;
  ASSIGN_OR_RETURN(std::optional<Lookup> lookup, NextLookup(batches));
  while (lookup.has_value()) {
    ASSIGN_OR_RETURN(const std::vector<Tensor> rows, TakeRows(*lookup));
    ASSIGN_OR_RETURN(std::optional<Lookup> next, NextLookup(batches));
    const data::SampleBatch& batch = lookup->batch;
    ASSIGN_OR_RETURN(const Tensor predictions, model_.Forward(rows, batch));
    const auto append = [](std::vector<float>& to,
                           const std::vector<float>& from) {
      to.insert(to.end(), from.begin(), from.end());
    };
    append(result.predictions, predictions.ToVector<float>());
    append(result.labels, batch.labels.ToVector<float>());
    append(result.ideal, batch.ideal);
    lookup = std::move(next);
  }
  return result;
}

absl::Status SparseTrainer::Save(const std::string& snapshot,
                                 const SaveOptions& options) const {
  std::vector<async::Future<TableSize>> saves;
  for (const Embedding& embedding : embeddings_) {
    saves.push_back(embedding.table().Save(snapshot, options));
  }
  if (dense_ != nullptr)
    saves.push_back(dense_->SaveSnapshot(snapshot, options));
  absl::Status status;
  for (async::Future<TableSize>& save : saves) {
    status.Update(std::move(save).Wait().status());
  }
  return status;
}

absl::StatusOr<std::optional<SparseTrainer::Lookup>> SparseTrainer::NextLookup(
    data::SampleBatches& batches) {
  ASSIGN_OR_RETURN(std::optional<data::SampleBatch> batch, batches.Next());
  if (!batch.has_value()) return std::nullopt;
  ASSIGN_OR_RETURN(const std::vector<Tensor> keys, model_.Keys(*batch));
  if (keys.size() != embeddings_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the model has ", embeddings_.size(),
                     " tables and keys for ", keys.size()));
  }
  Lookup lookup = {.batch = *std::move(batch), .rows = {}};
  for (size_t i = 0; i < keys.size(); ++i) {
    ASSIGN_OR_RETURN(auto rows, embeddings_[i].Prefetch(keys[i]));
    lookup.rows.push_back(std::move(rows));
  }
  return lookup;
}

absl::StatusOr<std::vector<Tensor>> SparseTrainer::TakeRows(Lookup& lookup) {
  std::vector<Tensor> rows;
  for (size_t i = 0; i < lookup.rows.size(); ++i) {
    embeddings_[i].SetStep(step_);
    ASSIGN_OR_RETURN(Tensor taken,
                     embeddings_[i].Forward(std::move(lookup.rows[i])));
    rows.push_back(std::move(taken));
  }
  return rows;
}

absl::Status SparseTrainer::Flush() {
  absl::Status status;
  for (Embedding& embedding : embeddings_) status.Update(embedding.Flush());
  return status;
}

}  // namespace hawser::ps
