#include "parallel/testing/hook_passes.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "async/status_macros.h"
#include "tensor/ops/random.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::parallel {

absl::StatusOr<std::vector<std::vector<double>>> RunHookPasses(
    collectives::ProcessGroup& group, const CommunicationHook& hook,
    tensor::DType dtype, tensor::Device device) {
  const tensor::Shape shapes[] = {{12, 9}, {7}, {5, 4, 6}};
  int64_t count = 0;
  for (const tensor::Shape& shape : shapes) count += shape.num_elements();
  GradientBucket bucket;
  bucket.is_last = true;
  ASSIGN_OR_RETURN(bucket.flat, Tensor::TryEmpty({count}, {.dtype = dtype,
                                                           .device = device}));
  int64_t begin = 0;
  for (const tensor::Shape& shape : shapes) {
    ASSIGN_OR_RETURN(const Tensor part,
                     bucket.flat.Narrow(0, begin, shape.num_elements()));
    begin += shape.num_elements();
    ASSIGN_OR_RETURN(Tensor view, part.View(shape));
    bucket.parameters.push_back(bucket.gradients.size());
    bucket.gradients.push_back(std::move(view));
  }
  tensor::Generator generator(static_cast<uint64_t>(group.rank()));
  std::vector<std::vector<double>> passes;
  for (int pass = 0; pass < 6; ++pass) {
    ASSIGN_OR_RETURN(
        const Tensor gradients,
        tensor::Normal({count}, 0, 1, generator, {.dtype = dtype}));
    RETURN_IF_ERROR(bucket.flat.CopyFrom(gradients));
    RETURN_IF_ERROR(hook(group, bucket).Wait());
    ASSIGN_OR_RETURN(const Tensor host, bucket.flat.To(tensor::kCpu));
    ASSIGN_OR_RETURN(const Tensor reduced, host.To(tensor::DType::kF64));
    passes.push_back(reduced.ToVector<double>());
  }
  return passes;
}

}  // namespace hawser::parallel
