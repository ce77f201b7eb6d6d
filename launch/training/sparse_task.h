// A sparse model and the samples on which a job trains it.

#ifndef HAWSER_LAUNCH_TRAINING_SPARSE_TASK_H_
#define HAWSER_LAUNCH_TRAINING_SPARSE_TASK_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "data/tabular/sample_batches.h"
#include "data/tabular/samples.h"
#include "launch/training/training_flags.h"
#include "ps/training/sparse_model.h"

namespace hawser::launch {

struct SparseData {
  data::SampleOpener train = nullptr;
  // Null: each TrainingOptions::test_every-th of the training samples.
  data::SampleOpener test = nullptr;
};

// Describes a task. Each process of a job calls its functions; they must return
// the same everywhere.
struct SparseTask {
  // In the result.
  std::string name = {};
  // Measure of the predictions for the test samples, such as data::Auc, and its
  // name in the result, such as "auc".
  std::string measure_name = {};
  std::function<absl::StatusOr<double>(std::span<const float> predictions,
                                       std::span<const float> labels)>
      measure = nullptr;
  std::function<absl::StatusOr<SparseData>(const TrainingOptions& options)>
      open_data = nullptr;
  // `samples` describes all samples of SparseData::train.
  std::function<absl::StatusOr<std::unique_ptr<ps::SparseModel>>(
      const TrainingOptions& options, const data::SampleWidth& width,
      const data::SampleSummary& samples)>
      make_model = nullptr;
};

// A task whose samples were read and checked once, unless
// TrainingOptions::samples describes them, and its model.
class LoadedTask {
 public:
  // kInvalidArgument: there are no samples for training or testing, those for
  // testing have other columns, all lack keys, or a table of the model is not
  // described correctly. Errors of the readers and of
  // the functions of `task`. Both arguments must outlive the result.
  static absl::StatusOr<LoadedTask> Load(const SparseTask& task,
                                         const TrainingOptions& options);

  ps::SparseModel& model() const { return *model_; }
  // Of the training data.
  const data::SampleSummary& samples() const { return samples_; }

  // Samples of a pass over the training samples by all trainers.
  int64_t samples_per_epoch(int num_trainers) const;
  // The part of `trainer` in an epoch, in an order of its own.
  absl::StatusOr<data::SampleBatches> TrainingBatches(int64_t epoch,
                                                      int trainer,
                                                      int num_trainers) const;
  absl::StatusOr<data::SampleBatches> TestBatches() const;

 private:
  LoadedTask(const TrainingOptions& options, SparseData data)
      : options_(options), data_(std::move(data)) {}

  data::SampleBatchesOptions Training(int num_trainers) const;
  data::SampleBatchesOptions Test() const;
  // Reads and checks all samples.
  absl::Status CheckSamples(data::SampleReader& reader);
  absl::Status CheckTestSamples(const data::SampleWidth& width);

  const TrainingOptions& options_;
  SparseData data_;
  data::SampleSummary samples_;
  std::unique_ptr<ps::SparseModel> model_;
};

}  // namespace hawser::launch

#endif  // HAWSER_LAUNCH_TRAINING_SPARSE_TASK_H_
