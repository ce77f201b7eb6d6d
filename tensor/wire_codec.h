// Tensors to and from the wire form that proto/tensor.proto describes.

#ifndef HAWSER_TENSOR_WIRE_CODEC_H_
#define HAWSER_TENSOR_WIRE_CODEC_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensor/dtype.h"
#include "tensor/memory/storage.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::v1 {
class TensorHeader;
}  // namespace hawser::v1

namespace hawser::tensor {

// The largest size of one dimension on the wire.
inline constexpr int64_t kMaxWireDim = int64_t{1} << 40;

// The header of `tensor`, which is defined. The bytes that go with it are those
// of tensor.To(kCpu) made Contiguous().
v1::TensorHeader ToHeader(const Tensor& tensor, bool requires_grad = false);

// What a valid header says.
struct WireTensor {
  DType dtype;
  Shape shape;
  int64_t bytes;
  bool requires_grad;
};

// Checks a header that came with `payload_bytes` bytes of elements, in any
// order of hostility: allocates nothing, cannot crash. kInvalidArgument, saying
// what is wrong, unless it obeys every rule of proto/tensor.proto.
absl::StatusOr<WireTensor> ValidateHeader(const v1::TensorHeader& header,
                                          uint64_t payload_bytes);

// The tensor of a header with whose `payload_bytes` bytes of elements `fill`
// fills its memory. Bytes of a bool tensor other than 0 become 1.
// kInvalidArgument as ValidateHeader(), kResourceExhausted for want of memory,
// and what `fill` returns.
absl::StatusOr<Tensor> DecodeTensor(
    const v1::TensorHeader& header, uint64_t payload_bytes,
    absl::FunctionRef<absl::Status(std::span<std::byte>)> fill);

// Same, with elements that arrived as `chunks`, in order. Copies each byte
// once; nothing refers to the chunks afterwards.
absl::StatusOr<Tensor> DecodeTensor(
    const v1::TensorHeader& header,
    std::span<const std::span<const std::byte>> chunks);

// Same, with elements that are all the bytes of `storage`, which is on the CPU
// and becomes the tensor's: nothing is copied.
absl::StatusOr<Tensor> AdoptTensor(const v1::TensorHeader& header,
                                   StoragePtr storage);

}  // namespace hawser::tensor

#endif  // HAWSER_TENSOR_WIRE_CODEC_H_
