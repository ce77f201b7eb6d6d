// Gradients that are reduced together.

#ifndef HAWSER_PARALLEL_GRADIENT_BUCKET_H_
#define HAWSER_PARALLEL_GRADIENT_BUCKET_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "collectives/process_group.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace hawser::parallel {

using tensor::Tensor;

// A bucket of gradients of one dtype, in one vector.
struct GradientBucket {
  // In the order in which buckets are reduced, which is the same on all ranks.
  int index = 0;
  bool is_last = false;
  // All gradients, one after the other.
  Tensor flat;
  // Views of `flat` in the shapes of the parameters.
  std::vector<Tensor> gradients;
  // Indices of the parameters.
  std::vector<size_t> parameters;
};

// Starts the reduction of a bucket: once the result has completed, `flat` has
// the gradients to train with, the same on all ranks. Hooks of all ranks run in
// the same order, and start the same operations of the group. Called in the
// thread of the backward pass, so it must not wait for the operation. What it
// captures must outlive the passes.
using CommunicationHook = std::function<collectives::Work(
    collectives::ProcessGroup& group, const GradientBucket& bucket)>;

// What AssignBuckets knows of a parameter.
struct BucketItem {
  tensor::DType dtype = tensor::DType::kF32;
  int64_t bytes = 0;
};

// Divides parameters into buckets. Takes them in the order of `order`, and
// those of one dtype together; a bucket is complete once it has at least
// `first_bytes` bytes, if it is the first of its dtype, or `bytes`. Buckets are
// ordered by their first parameter in `order`.
std::vector<std::vector<size_t>> AssignBuckets(
    const std::vector<BucketItem>& items, const std::vector<size_t>& order,
    int64_t first_bytes, int64_t bytes);

// Bytes of a bucket of a model with so many bytes of gradients, if the user
// sets none: a sixteenth of them. The last bucket is complete when the backward
// pass ends, so that nothing hides its reduction. At least 1 MiB, since each
// reduction takes some time whatever its size, and at most 25 MiB.
int64_t DefaultBucketBytes(int64_t gradient_bytes);

}  // namespace hawser::parallel

#endif  // HAWSER_PARALLEL_GRADIENT_BUCKET_H_
