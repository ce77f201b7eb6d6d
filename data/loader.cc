#include "data/loader.h"

#include <span>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/blocking_region.h"
#include "async/exceptions.h"
#include "async/mutex.h"
#include "async/status_macros.h"
#include "data/batch_sampler.h"

namespace hawser::data {
namespace {

using Tensors = std::vector<Tensor>;

absl::Status CheckRows(const Tensors& batch, size_t num_samples) {
  for (size_t i = 0; i < batch.size(); ++i) {
    const Tensor& rows = batch[i];
    if (rows.defined() && rows.rank() > 0 &&
        rows.dim(0) == static_cast<int64_t>(num_samples)) {
      continue;
    }
    return absl::InternalError(absl::StrCat(
        "tensor ", i, " is ", rows.defined() ? rows.ToString() : "undefined",
        ", without a row for each of ", num_samples, " samples"));
  }
  return absl::OkStatus();
}

absl::Status WithPrefix(const std::string& prefix, const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat(prefix, ": ", status.message()));
}

}  // namespace

// The part of a loader that its fetches share.
class Loader::Epoch {
 public:
  Epoch(std::shared_ptr<const Dataset> dataset, std::vector<int64_t> indices,
        BatchSampler batches)
      : dataset_(std::move(dataset)),
        indices_(std::move(indices)),
        batches_(batches) {}

  int64_t num_batches() const {
    return batches_.NumBatches(static_cast<int64_t>(indices_.size()));
  }

  // Fetches a batch unless the epoch was stopped.
  absl::StatusOr<Tensors> Fetch(int64_t batch) {
    {
      async::MutexLock lock(&mutex_);
      if (stopped_) return absl::CancelledError("the loader was destroyed");
      ++num_running_;
    }
    absl::StatusOr<Tensors> result = FetchOrName(batch);
    async::MutexLock lock(&mutex_);
    if (--num_running_ == 0) none_runs_.NotifyAll();
    return result;
  }

  // Lets no further fetch begin, and waits for those that run.
  void Stop() {
    const async::BlockingRegion region;
    async::MutexLock lock(&mutex_);
    stopped_ = true;
    while (num_running_ > 0) none_runs_.Wait(&mutex_);
  }

 private:
  // Fetches a batch; errors name it and the first sample at fault.
  absl::StatusOr<Tensors> FetchOrName(int64_t batch) const {
    const std::span<const int64_t> samples = batches_.Batch(indices_, batch);
    absl::StatusOr<Tensors> result = FetchSamples(samples);
    if (result.ok()) return result;
    const std::string name = absl::StrCat("batch ", batch);
    for (size_t i = 0; i < samples.size() && !is_stopped(); ++i) {
      const absl::Status alone =
          samples.size() == 1 ? result.status()
                              : FetchSamples(samples.subspan(i, 1)).status();
      if (alone.ok()) continue;
      return WithPrefix(absl::StrCat(name, ", sample ", samples[i]), alone);
    }
    return WithPrefix(name, result.status());
  }

  absl::StatusOr<Tensors> FetchSamples(std::span<const int64_t> samples) const {
    absl::StatusOr<Tensors> result =
        async::CatchExceptions<absl::StatusOr<Tensors>>(
            "Dataset::Fetch", [&] { return dataset_->Fetch(samples); });
    if (result.ok()) RETURN_IF_ERROR(CheckRows(*result, samples.size()));
    return result;
  }

  bool is_stopped() const {
    async::MutexLock lock(&mutex_);
    return stopped_;
  }

  const std::shared_ptr<const Dataset> dataset_;
  const std::vector<int64_t> indices_;
  const BatchSampler batches_;

  mutable async::Mutex mutex_;
  async::CondVar none_runs_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t num_running_ ABSL_GUARDED_BY(mutex_) = 0;
};

absl::StatusOr<Loader> Loader::Start(std::shared_ptr<const Dataset> dataset,
                                     std::vector<int64_t> indices,
                                     const LoaderOptions& options,
                                     async::Executor* executor) {
  if (dataset == nullptr) {
    return absl::InvalidArgumentError("a loader needs a data set");
  }
  if (options.batches_ahead < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "batches_ahead is ", options.batches_ahead, "; it must be 1 or more"));
  }
  ASSIGN_OR_RETURN(
      const BatchSampler batches,
      BatchSampler::Create(options.batch_samples, options.drop_last));
  Loader loader(
      std::make_shared<Epoch>(std::move(dataset), std::move(indices), batches),
      options.batches_ahead, executor);
  loader.FetchAhead();
  return loader;
}

Loader::~Loader() {
  if (epoch_ != nullptr) epoch_->Stop();
}

int64_t Loader::num_batches() const { return epoch_->num_batches(); }

void Loader::FetchAhead() {
  while (static_cast<int64_t>(ahead_.size()) < batches_ahead_) {
    const int64_t batch = num_returned_ + static_cast<int64_t>(ahead_.size());
    if (batch >= epoch_->num_batches()) return;
    async::Promise<Tensors> promise;
    ahead_.push_back(promise.future());
    executor_->Post(
        [epoch = epoch_, batch, promise = std::move(promise)]() mutable {
          promise.Set(epoch->Fetch(batch));
        });
  }
}

absl::StatusOr<std::optional<std::vector<Tensor>>> Loader::Next() {
  if (ahead_.empty()) return std::nullopt;
  absl::StatusOr<Tensors> batch = std::move(ahead_.front()).Wait();
  ahead_.pop_front();
  ++num_returned_;
  FetchAhead();
  if (!batch.ok()) return std::move(batch).status();
  return *std::move(batch);
}

}  // namespace hawser::data
