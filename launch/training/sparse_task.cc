#include "launch/training/sparse_task.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "ps/storage/table_spec.h"

namespace hawser::launch {

absl::StatusOr<LoadedTask> LoadedTask::Load(const SparseTask& task,
                                            const TrainingOptions& options) {
  ASSIGN_OR_RETURN(SparseData data, task.open_data(options));
  LoadedTask loaded(options, std::move(data));
  ASSIGN_OR_RETURN(const auto reader, loaded.data_.train());
  const data::SampleWidth width = reader->width();
  if (width.keys == 0) {
    return absl::InvalidArgumentError("the samples have no keys to look up");
  }
  if (options.samples.has_value()) {
    loaded.samples_ = *options.samples;
  } else {
    RETURN_IF_ERROR(loaded.CheckSamples(*reader));
  }
  ASSIGN_OR_RETURN(loaded.model_,
                   task.make_model(options, width, loaded.samples_));
  for (const ps::TableSpec& table : loaded.model_->tables()) {
    RETURN_IF_ERROR(ps::NormalizeTableSpec(table));
  }
  return loaded;
}

absl::Status LoadedTask::CheckSamples(data::SampleReader& reader) {
  ASSIGN_OR_RETURN(samples_, data::Summarize(reader));
  if (samples_per_epoch(options_.num_trainers) == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "there are ", samples_.count, " samples, too few to train with ",
        options_.num_trainers, " trainers"));
  }
  return CheckTestSamples(reader.width());
}

absl::Status LoadedTask::CheckTestSamples(const data::SampleWidth& width) {
  int64_t count = data::NumChosen(samples_.count, Test());
  if (data_.test != nullptr) {
    ASSIGN_OR_RETURN(const auto reader, data_.test());
    if (reader->width() != width) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the test samples have ", reader->width().dense, " numbers and ",
          reader->width().keys, " keys, those for training ", width.dense,
          " and ", width.keys));
    }
    ASSIGN_OR_RETURN(const data::SampleSummary summary,
                     data::Summarize(*reader));
    count = summary.count;
  }
  if (count > 0) return absl::OkStatus();
  return absl::InvalidArgumentError("there are no samples for testing");
}

data::SampleBatchesOptions LoadedTask::Training(int num_trainers) const {
  return {.batch_samples = options_.batch_samples,
          .shuffle_samples = options_.shuffle_samples,
          .test_every = data_.test == nullptr ? options_.test_every : 0,
          .num_replicas = num_trainers};
}

data::SampleBatchesOptions LoadedTask::Test() const {
  const bool apart = data_.test != nullptr;
  return {.batch_samples = options_.batch_samples,
          .test_every = apart ? 0 : options_.test_every,
          .test = !apart};
}

int64_t LoadedTask::samples_per_epoch(int num_trainers) const {
  return num_trainers * data::NumChosen(samples_.count, Training(num_trainers));
}

absl::StatusOr<data::SampleBatches> LoadedTask::TrainingBatches(
    int64_t epoch, int trainer, int num_trainers) const {
  data::SampleBatchesOptions batches = Training(num_trainers);
  batches.rank = trainer;
  batches.seed = options_.seed + static_cast<uint64_t>(epoch);
  ASSIGN_OR_RETURN(auto reader, data_.train());
  return data::SampleBatches::Create(std::move(reader), batches);
}

absl::StatusOr<data::SampleBatches> LoadedTask::TestBatches() const {
  ASSIGN_OR_RETURN(auto reader,
                   data_.test == nullptr ? data_.train() : data_.test());
  return data::SampleBatches::Create(std::move(reader), Test());
}

}  // namespace hawser::launch
