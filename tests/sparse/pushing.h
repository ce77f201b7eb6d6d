#ifndef HAWSER_TESTS_SPARSE_PUSHING_H_
#define HAWSER_TESTS_SPARSE_PUSHING_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>

#include "absl/status/status.h"
#include "async/future.h"
#include "ps/table.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace hawser::tests {

// Pushes that are started by one thread, of which some are under way.
class Pushing {
 public:
  static constexpr size_t kPushesUnderWay = 4;

  // The table has one weight per row, and adds 1 to it for a gradient of -1.
  Pushing(ps::Table table, int64_t keys)
      : table_(std::move(table)),
        keys_(Tensor::Arange(keys, {.dtype = tensor::DType::kI64})),
        gradients_(Tensor::Full({keys, 1}, -1)) {}

  // Adds 1 to all rows in each push, until a push was acknowledged and it is
  // `end`.
  void Until(std::chrono::steady_clock::time_point end) {
    const int64_t before = acknowledged_;
    while (std::chrono::steady_clock::now() < end || acknowledged_ == before) {
      while (under_way_.size() >= kPushesUnderWay) WaitForOne();
      under_way_.push_back(table_.Push(keys_, gradients_));
    }
  }
  void Finish() {
    while (!under_way_.empty()) WaitForOne();
  }

  int64_t acknowledged() const { return acknowledged_; }
  const absl::Status& status() const { return status_; }
  const Tensor& keys() const { return keys_; }

 private:
  void WaitForOne() {
    const absl::Status status = under_way_.front().Wait();
    under_way_.pop_front();
    if (status.ok()) ++acknowledged_;
    status_.Update(status);
  }

  const ps::Table table_;
  const Tensor keys_;
  const Tensor gradients_;
  std::deque<async::Future<void>> under_way_;
  int64_t acknowledged_ = 0;
  absl::Status status_;
};

}  // namespace hawser::tests

#endif  // HAWSER_TESTS_SPARSE_PUSHING_H_
