#include "rpc/functions/method.h"

#include <cstddef>
#include <utility>

#include "absl/status/statusor.h"
#include "rpc/transport/transport.h"
#include "tensor/device.h"
#include "tensor/dtype.h"
#include "tensor/memory/storage.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::rpc {

absl::StatusOr<tensor::Tensor> MethodCall::NewReplyTensor(
    const tensor::Shape& shape, tensor::DType dtype) const {
  if (incoming != nullptr) {
    const size_t bytes =
        static_cast<size_t>(shape.num_elements()) * tensor::ItemBytes(dtype);
    if (tensor::StoragePtr memory = incoming->AllocateReply(bytes)) {
      return tensor::Tensor::FromStorage(
          std::move(memory), 0, shape, tensor::Strides::RowMajor(shape), dtype);
    }
  }
  return tensor::Tensor::TryEmpty(shape, {.dtype = dtype});
}

}  // namespace hawser::rpc
