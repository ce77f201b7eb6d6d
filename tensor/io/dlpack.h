// Exchange of tensors with other frameworks, without a copy, by DLPack.
//
// The structs below have the layout of DLPack's dlpack.h, versions 0.2 to 0.8
// (ABI version 1, "unversioned" DLManagedTensor), under names of our own, so
// that this header and that one can be included together: cast the pointer.

#ifndef HAWSER_TENSOR_IO_DLPACK_H_
#define HAWSER_TENSOR_IO_DLPACK_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "tensor/tensor.h"

namespace hawser::tensor {

enum DlpackDeviceType : int32_t {
  kDlpackCpu = 1,
  kDlpackCuda = 2,
  kDlpackCudaHost = 3,  // Pinned host memory.
};

enum DlpackTypeCode : uint8_t {
  kDlpackInt = 0,
  kDlpackUint = 1,
  kDlpackFloat = 2,
  kDlpackBfloat = 4,
  kDlpackBool = 6,
};

struct DlpackDevice {
  int32_t device_type;
  int32_t device_id;
};

struct DlpackDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};

struct DlpackTensor {
  void* data;
  DlpackDevice device;
  int32_t ndim;
  DlpackDataType dtype;
  int64_t* shape;
  int64_t* strides;  // In elements; null for dense row-major.
  uint64_t byte_offset;
};

struct DlpackManagedTensor {
  DlpackTensor dl_tensor;
  void* manager_ctx;
  // Called once by the consumer; null if nothing needs to be released.
  void (*deleter)(DlpackManagedTensor* self);
};

// Exports `tensor` to another framework, which shares its memory and keeps it
// alive until it calls the deleter, from any thread. Strides are always set.
// Writes by the other framework do not change version(). kInvalidArgument if
// the tensor is undefined.
absl::StatusOr<DlpackManagedTensor*> ToDlpack(const Tensor& tensor);

// Imports a tensor from another framework, sharing its memory. On success takes
// ownership of `managed` and calls its deleter in the thread that drops the
// last view; on error the caller keeps ownership. Bools must hold 0 or 1.
//
// kInvalidArgument, with the reason: null pointer, more than 16 dimensions,
// negative sizes or strides, sizes or offsets beyond an int64, a dtype with
// lanes or without a counterpart here, memory not aligned to its elements, an
// unknown device.
absl::StatusOr<Tensor> FromDlpack(DlpackManagedTensor* managed);

}  // namespace hawser::tensor

#endif  // HAWSER_TENSOR_IO_DLPACK_H_
