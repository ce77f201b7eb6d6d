#include "data/tabular/sample_batches.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"

namespace hawser::data {
namespace {

absl::Status CheckOptions(const SampleBatchesOptions& options) {
  const auto refuse = [](const char* name, int64_t value) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is ", value, ", out of its range"));
  };
  if (options.batch_samples < 1) {
    return refuse("batch_samples", options.batch_samples);
  }
  if (options.shuffle_samples < 1) {
    return refuse("shuffle_samples", options.shuffle_samples);
  }
  if (options.test_every < 0) return refuse("test_every", options.test_every);
  if (options.num_replicas < 1) {
    return refuse("num_replicas", options.num_replicas);
  }
  if (options.rank < 0 || options.rank >= options.num_replicas) {
    return refuse("rank", options.rank);
  }
  return absl::OkStatus();
}

bool IsChosen(int64_t index, const SampleBatchesOptions& options) {
  const bool for_testing = options.test_every > 0 &&
                           index % options.test_every == options.test_every - 1;
  return for_testing == options.test;
}

// The rows of `order` of a column with `width` numbers per sample.
template <class T>
Tensor GatherRows(const std::vector<T>& column, int64_t width,
                  std::span<const size_t> order) {
  const auto row_size = static_cast<size_t>(width);
  std::vector<T> rows;
  rows.reserve(order.size() * row_size);
  for (const size_t row : order) {
    const T* const begin = column.data() + row * row_size;
    rows.insert(rows.end(), begin, begin + row_size);
  }
  return Tensor::FromVector(rows, {static_cast<int64_t>(order.size()), width});
}

}  // namespace

int64_t NumChosen(int64_t total, const SampleBatchesOptions& options) {
  const int64_t tests = options.test_every > 0 ? total / options.test_every : 0;
  return (options.test ? tests : total - tests) / options.num_replicas;
}

absl::StatusOr<SampleBatches> SampleBatches::Create(
    std::unique_ptr<SampleReader> reader, const SampleBatchesOptions& options) {
  RETURN_IF_ERROR(CheckOptions(options));
  return SampleBatches(std::move(reader), options);
}

absl::StatusOr<std::optional<SampleBatch>> SampleBatches::Next() {
  if (num_returned_ == order_.size()) RETURN_IF_ERROR(Fill());
  if (order_.empty()) return std::nullopt;
  const size_t begin = num_returned_;
  num_returned_ = std::min(begin + static_cast<size_t>(options_.batch_samples),
                           order_.size());
  return Gather(begin, num_returned_);
}

absl::Status SampleBatches::Fill() {
  samples_ = Samples();
  num_returned_ = 0;
  // Whole batches, so that only the last one is smaller.
  const int64_t batch = options_.batch_samples;
  const int64_t capacity =
      std::max(options_.shuffle_samples / batch, int64_t{1}) * batch;
  while (!at_end_ && samples_.size() < capacity) {
    ASSIGN_OR_RETURN(const bool more, ReadOne());
    at_end_ = !more;
  }
  order_.resize(static_cast<size_t>(samples_.size()));
  std::iota(order_.begin(), order_.end(), size_t{0});
  if (options_.shuffle_samples == 1) return absl::OkStatus();
  for (size_t i = order_.size(); i > 1; --i) {
    std::swap(order_[i - 1], order_[random_.Below(i)]);
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> SampleBatches::ReadOne() {
  const int64_t size = samples_.size();
  for (int64_t rank = 0; rank < options_.num_replicas; ++rank) {
    ASSIGN_OR_RETURN(const bool more,
                     ReadChosen(rank == options_.rank ? &samples_ : nullptr));
    if (more) continue;
    // The sample belongs to an incomplete group.
    const auto keep = [size](auto& column, int64_t width) {
      column.resize(std::min(column.size(), static_cast<size_t>(size * width)));
    };
    keep(samples_.labels, 1);
    keep(samples_.dense, reader_->width().dense);
    keep(samples_.keys, reader_->width().keys);
    keep(samples_.values, reader_->width().keys);
    keep(samples_.ideal, 1);
    return false;
  }
  return true;
}

absl::StatusOr<bool> SampleBatches::ReadChosen(Samples* samples) {
  while (true) {
    const bool chosen = IsChosen(num_read_++, options_);
    ASSIGN_OR_RETURN(const bool more,
                     reader_->Next(chosen ? samples : nullptr));
    if (!more || chosen) return more;
  }
}

SampleBatch SampleBatches::Gather(size_t begin, size_t end) const {
  const auto order = std::span(order_).subspan(begin, end - begin);
  const SampleWidth& width = reader_->width();
  SampleBatch batch{.labels = GatherRows(samples_.labels, 1, order),
                    .dense = GatherRows(samples_.dense, width.dense, order),
                    .keys = GatherRows(samples_.keys, width.keys, order),
                    .values = GatherRows(samples_.values, width.keys, order),
                    .ideal = {}};
  if (!samples_.ideal.empty()) {
    for (const size_t row : order) batch.ideal.push_back(samples_.ideal[row]);
  }
  return batch;
}

absl::StatusOr<SampleSummary> Summarize(SampleReader& reader) {
  constexpr int64_t kSamplesAtOnce = 4096;
  SampleSummary summary;
  double sum = 0;
  for (bool more = true; more;) {
    Samples samples;
    while (more && samples.size() < kSamplesAtOnce) {
      ASSIGN_OR_RETURN(more, reader.Next(&samples));
    }
    summary.count += samples.size();
    for (const float label : samples.labels) sum += label;
  }
  if (summary.count > 0) {
    summary.mean_label = sum / static_cast<double>(summary.count);
  }
  return summary;
}

}  // namespace hawser::data
