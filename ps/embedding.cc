#include "ps/embedding.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/future.h"
#include "async/mutex.h"
#include "async/status_macros.h"
#include "autograd/grad_mode.h"
#include "autograd/node.h"
#include "autograd/variable.h"
#include "ps/row_encoding.h"
#include "ps/storage/consistency.h"
#include "ps/storage/push_window.h"
#include "ps/table.h"
#include "tensor/ops/elementwise.h"
#include "tensor/tensor.h"

namespace hawser::ps {

// The table, and the pushes under way.
class Embedding::State {
 public:
  State(Table table, const EmbeddingOptions& options)
      : table_(std::move(table)),
        pooling_(options.pooling),
        max_under_way_(MaxUnderWay(table_.spec().consistency, options)),
        encoding_(options.encoding) {}

  const Table& table() const { return table_; }
  size_t max_under_way() const { return max_under_way_; }

  // Starts to pull rows, or the sums of bags.
  async::Future<Tensor> Pull(const Tensor& keys) const {
    const PullOptions options = {.create_missing = autograd::GradEnabled(),
                                 .encoding = encoding_};
    return pooling_ == Pooling::kNone ? table_.Pull(keys, options)
                                      : table_.PullSums(keys, options);
  }

  // The result of a look-up, from the rows or sums that were pulled.
  absl::StatusOr<Tensor> Pool(const Tensor& keys, Tensor rows) const {
    if (pooling_ != Pooling::kMean) return rows;
    return tensor::MulScalar(rows, Share(keys));
  }

  void SetStep(std::optional<int64_t> step) {
    const async::MutexLock lock(&mutex_);
    step_ = step;
  }
  std::optional<int64_t> step() const {
    const async::MutexLock lock(&mutex_);
    return step_;
  }

  // Starts a push of the gradients of a look-up of that step.
  absl::Status Push(const Tensor& keys, Tensor gradients,
                    std::optional<int64_t> step) {
    if (pooling_ == Pooling::kMean) {
      ASSIGN_OR_RETURN(gradients, tensor::MulScalar(gradients, Share(keys)));
    }
    const PushOptions options = {.step = step, .encoding = encoding_};
    async::Future<void> push = pooling_ == Pooling::kNone
                                   ? table_.Push(keys, gradients, options)
                                   : table_.PushSums(keys, gradients, options);
    const async::MutexLock lock(&mutex_);
    under_way_.push_back(std::move(push));
    return absl::OkStatus();
  }

  // Waits until at most `count` pushes are under way. Returns the first error
  // of those that have ended.
  absl::Status WaitUntil(size_t count) {
    absl::Status status;
    while (true) {
      async::Future<void> oldest;
      {
        const async::MutexLock lock(&mutex_);
        if (under_way_.size() <= count &&
            (under_way_.empty() || !under_way_.front().ready())) {
          return status;
        }
        oldest = std::move(under_way_.front());
        under_way_.pop_front();
      }
      status.Update(std::move(oldest).Wait());
    }
  }

 private:
  // A synchronous table applies pushes when their clock is complete, and pulls
  // wait for that: a look-up must not wait for pushes of its own clock.
  static size_t MaxUnderWay(const Consistency& consistency,
                            const EmbeddingOptions& options) {
    if (consistency.mode == Consistency::Mode::kSynchronous) {
      return PushWindow::kDepth;
    }
    return static_cast<size_t>(std::clamp<int64_t>(
        options.max_pushes_under_way, 0, int64_t{PushWindow::kDepth}));
  }

  // Of a row in the mean of its bag.
  static double Share(const Tensor& keys) {
    return 1 / static_cast<double>(std::max<int64_t>(keys.dim(-1), 1));
  }

  const Table table_;
  const Pooling pooling_;
  const size_t max_under_way_;
  const RowEncoding encoding_;

  mutable async::Mutex mutex_;
  std::optional<int64_t> step_ ABSL_GUARDED_BY(mutex_);
  // The oldest first.
  std::deque<async::Future<void>> under_way_ ABSL_GUARDED_BY(mutex_);
};

// A look-up in the graph.
class Embedding::Node final : public autograd::Node {
 public:
  Node(std::shared_ptr<State> state, Tensor keys)
      : state_(std::move(state)),
        keys_(std::move(keys)),
        step_(state_->step()) {}

  std::string_view name() const override { return "EmbeddingBackward"; }

  absl::StatusOr<std::vector<Tensor>> Apply(
      std::vector<Tensor> gradients) override {
    RETURN_IF_ERROR(state_->Push(keys_, std::move(gradients[0]), step_));
    return std::vector<Tensor>();
  }

 private:
  const std::shared_ptr<State> state_;
  const Tensor keys_;
  const std::optional<int64_t> step_;
};

Embedding::Embedding(Table table, const EmbeddingOptions& options)
    : state_(std::make_shared<State>(std::move(table), options)) {}

const Table& Embedding::table() const { return state_->table(); }

absl::StatusOr<Tensor> Embedding::Forward(const Tensor& keys) {
  RETURN_IF_ERROR(state_->WaitUntil(state_->max_under_way()));
  // The caller may change its keys before the backward pass.
  ASSIGN_OR_RETURN(Prefetched prefetched, Prefetch(keys));
  return Finish(std::move(prefetched));
}

absl::StatusOr<Embedding::Prefetched> Embedding::Prefetch(const Tensor& keys) {
  ASSIGN_OR_RETURN(Tensor kept, keys.Clone());
  async::Future<Tensor> rows = state_->Pull(kept);
  return Prefetched(std::move(kept), std::move(rows));
}

absl::StatusOr<Tensor> Embedding::Forward(Prefetched prefetched) {
  RETURN_IF_ERROR(state_->WaitUntil(state_->max_under_way()));
  return Finish(std::move(prefetched));
}

absl::StatusOr<Tensor> Embedding::Finish(Prefetched prefetched) {
  ASSIGN_OR_RETURN(Tensor rows, std::move(prefetched.rows_).Wait());
  ASSIGN_OR_RETURN(rows, state_->Pool(prefetched.keys_, std::move(rows)));
  if (!autograd::GradEnabled()) return rows;
  autograd::SetHistory(
      rows, std::make_shared<Node>(state_, std::move(prefetched.keys_)), 0);
  return rows;
}

void Embedding::SetStep(std::optional<int64_t> step) { state_->SetStep(step); }

absl::Status Embedding::Flush() { return state_->WaitUntil(0); }

}  // namespace hawser::ps
