// Random tensors from a seeded, counter-based generator (Philox 4x32-10:
// Salmon et al., SC 2011): the same seed gives the same random bits on every
// device and machine, whatever is asked of other generators in between.
#ifndef HAWSER_TENSOR_OPS_RANDOM_H_
#define HAWSER_TENSOR_OPS_RANDOM_H_

#include <atomic>
#include <cstdint>

#include "absl/status/statusor.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::tensor {

// A stream of numbers: a seed and how many were taken. Thread-safe; which of
// two concurrent calls gets which numbers is open.
class Generator {
 public:
  explicit Generator(uint64_t seed, uint64_t offset = 0)
      : seed_(seed), offset_(offset) {}

  Generator(const Generator&) = delete;
  Generator& operator=(const Generator&) = delete;

  uint64_t seed() const { return seed_; }
  // With seed() the whole state: Generator(seed, offset) goes on from here.
  uint64_t offset() const { return offset_.load(std::memory_order_relaxed); }
  // Takes `count` numbers; returns where they start.
  uint64_t Take(uint64_t count) {
    return offset_.fetch_add(count, std::memory_order_relaxed);
  }

 private:
  const uint64_t seed_;
  std::atomic<uint64_t> offset_;
};

// Floating-point dtypes (Bernoulli: any). kInvalidArgument: another dtype, a
// bound, deviation or probability that is not finite or in its range.

// In [low, high).
absl::StatusOr<Tensor> Uniform(const Shape& shape, double low, double high,
                               Generator& generator,
                               const TensorOptions& options = {});
absl::StatusOr<Tensor> Normal(const Shape& shape, double mean, double stddev,
                              Generator& generator,
                              const TensorOptions& options = {});
// 1 with `probability`, else 0.
absl::StatusOr<Tensor> Bernoulli(const Shape& shape, double probability,
                                 Generator& generator,
                                 const TensorOptions& options = {});
// 0 .. n-1 in random order; i64 [n], in host memory.
absl::StatusOr<Tensor> RandPerm(int64_t n, Generator& generator);

}  // namespace hawser::tensor

#endif  // HAWSER_TENSOR_OPS_RANDOM_H_
