// Batches of a data set, fetched ahead by other threads.

#ifndef HAWSER_DATA_LOADER_H_
#define HAWSER_DATA_LOADER_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "async/executor.h"
#include "async/future.h"
#include "data/dataset.h"
#include "tensor/tensor.h"

namespace hawser::data {

struct LoaderOptions {
  // At least 1. The last batch of an epoch may be smaller, or, with
  // `drop_last`, is left out.
  int64_t batch_samples = 1;
  bool drop_last = false;
  // Number of batches that are fetched while the caller works on one. At least
  // 1; as many threads of the executor can be of use.
  int64_t batches_ahead = 4;
};

// One epoch of a data set: the batches of the indices that a sampler gave.
//
// The executor fetches batches ahead, several at a time, and Next returns them
// in the order of the indices. Batches and their order do not depend on the
// threads. At most `batches_ahead` batches are being fetched or wait for Next,
// so that a slow caller bounds the memory.
//
// Not thread-safe; different loaders may share a data set and an executor.
class Loader {
 public:
  // Begins to fetch. `executor`, usually a thread pool, must outlive the
  // loader. The loader and the fetches that the executor still has queued share
  // `dataset`.
  //
  // kInvalidArgument: `dataset` is null, or an option is out of its range.
  static absl::StatusOr<Loader> Start(std::shared_ptr<const Dataset> dataset,
                                      std::vector<int64_t> indices,
                                      const LoaderOptions& options,
                                      async::Executor* executor);
  Loader(Loader&&) = default;
  Loader& operator=(Loader&&) = delete;
  // May be destroyed at any time. Fetches that have not begun never run; waits
  // for those that run now, at most one per thread. Must not run inside
  // Dataset::Fetch.
  ~Loader();

  // The number of batches of the epoch.
  int64_t num_batches() const;

  // Waits for the next batch, the tensors of Dataset::Fetch. Nothing at the end
  // of the epoch. On a thread of the executor's pool, the pool replaces the
  // waiting thread.
  //
  // An error takes the place of its batch: the next call goes on with the batch
  // after it. It has the code that Dataset::Fetch returned, and names the
  // batch and the sample at fault. To find the sample, the loader fetches those
  // of the batch one by one; if each can be fetched alone, only the batch is
  // named. Further codes:
  //   kInternal   Dataset::Fetch threw an exception, or returned tensors
  //               without a row for each sample.
  //   kCancelled  the executor was shut down.
  absl::StatusOr<std::optional<std::vector<Tensor>>> Next();

 private:
  class Epoch;

  Loader(std::shared_ptr<Epoch> epoch, int64_t batches_ahead,
         async::Executor* executor)
      : epoch_(std::move(epoch)),
        batches_ahead_(batches_ahead),
        executor_(executor) {}

  void FetchAhead();

  // Null once moved from.
  std::shared_ptr<Epoch> epoch_;
  int64_t batches_ahead_;
  async::Executor* executor_;
  // Batches [num_returned_, num_returned_ + ahead_.size()).
  std::deque<async::Future<std::vector<Tensor>>> ahead_;
  int64_t num_returned_ = 0;
};

}  // namespace hawser::data

#endif  // HAWSER_DATA_LOADER_H_
