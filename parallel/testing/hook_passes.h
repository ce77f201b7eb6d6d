// Passes of a communication hook over one bucket, for tests.

#ifndef HAWSER_PARALLEL_TESTING_HOOK_PASSES_H_
#define HAWSER_PARALLEL_TESTING_HOOK_PASSES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "collectives/process_group.h"
#include "parallel/gradient_bucket.h"
#include "tensor/device.h"
#include "tensor/dtype.h"

namespace hawser::parallel {

// Reduces a bucket of two matrices and a vector, in memory of `device`, by
// `hook`, in six passes. The gradients depend on the rank and the pass alone.
// Returns the reduced elements of each pass. Errors of the hook and of tensors.
absl::StatusOr<std::vector<std::vector<double>>> RunHookPasses(
    collectives::ProcessGroup& group, const CommunicationHook& hook,
    tensor::DType dtype, tensor::Device device);

}  // namespace hawser::parallel

#endif  // HAWSER_PARALLEL_TESTING_HOOK_PASSES_H_
