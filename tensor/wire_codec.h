// Conversion of tensors to and from the wire format of proto/tensor.proto.

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

// Returns the header of `tensor`, which must be defined. The bytes that belong
// to it are those of tensor.To(kCpu) made Contiguous().
v1::TensorHeader ToHeader(const Tensor& tensor, bool requires_grad = false);

// Content of a valid header.
struct WireTensor {
  DType dtype;
  Shape shape;
  int64_t bytes;
  bool requires_grad;
};

// Validates an untrusted header that came with `payload_bytes` bytes of
// elements. Does not allocate and cannot crash. kInvalidArgument, with the
// reason, if it breaks a rule of proto/tensor.proto.
absl::StatusOr<WireTensor> ValidateHeader(const v1::TensorHeader& header,
                                          uint64_t payload_bytes);

// Replaces nonzero bytes, the elements of a bool tensor, by 1: other values are
// not a C++ bool.
void NormalizeBools(std::span<std::byte> memory);

// Decodes a tensor from a header and `payload_bytes` bytes of elements, which
// `fill` writes into its memory. Nonzero bytes of a bool tensor become 1.
// kInvalidArgument as ValidateHeader(), kResourceExhausted if out of memory,
// and errors of `fill`.
absl::StatusOr<Tensor> DecodeTensor(
    const v1::TensorHeader& header, uint64_t payload_bytes,
    absl::FunctionRef<absl::Status(std::span<std::byte>)> fill);

// Same, with the elements in `chunks`, in order. Copies each byte once; the
// chunks may be freed afterwards.
absl::StatusOr<Tensor> DecodeTensor(
    const v1::TensorHeader& header,
    std::span<const std::span<const std::byte>> chunks);

// Same, without a copy: the elements are all the bytes of `storage`, which must
// be on the CPU and becomes the tensor's storage.
absl::StatusOr<Tensor> AdoptTensor(const v1::TensorHeader& header,
                                   StoragePtr storage);

}  // namespace hawser::tensor

#endif  // HAWSER_TENSOR_WIRE_CODEC_H_
