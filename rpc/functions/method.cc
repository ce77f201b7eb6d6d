#include "rpc/functions/method.h"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "google/protobuf/message_lite.h"
#include "rpc/transport/transport.h"
#include "rpc/wire/protobuf_message.h"
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

namespace internal {

absl::Status ParseBody(const std::string& bytes,
                       google::protobuf::MessageLite& body) {
  if (body.ParseFromString(bytes)) return absl::OkStatus();
  return UnparsableMessage(body.GetTypeName());
}

absl::StatusOr<RawMessage> SerializeMessage(
    const google::protobuf::MessageLite& body,
    std::vector<tensor::Tensor> tensors) {
  RawMessage raw{std::string(), std::move(tensors)};
  if (!body.SerializeToString(&raw.body)) {
    return UnserializableMessage(body.GetTypeName());
  }
  return raw;
}

}  // namespace internal
}  // namespace hawser::rpc
