// One array per file, in NumPy's npy format.
//
// Format: numpy.lib.format, versions 1.0 to 3.0.

#ifndef HAWSER_TENSOR_IO_NPY_H_
#define HAWSER_TENSOR_IO_NPY_H_

#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensor/tensor.h"

namespace hawser::tensor {

// Reads a contiguous tensor on the CPU from a file of any element order and
// byte order. Memory is allocated only for data that the file really contains.
//
// Errors, in one line that names the file:
//   kInvalidArgument  not an npy file, a header other than a dictionary of
//                     descr, fortran_order and shape, an unsupported dtype,
//                     pickled objects, or a file length that does not match the
//                     header.
//   kNotFound, kPermissionDenied, ...  errors of the system.
//   kDataLoss         the file was truncated while it was read.
absl::StatusOr<Tensor> ReadNpy(std::string_view path);

// Writes `tensor`, of any strides and device, in version 1.0. As with
// SaveSafetensors(), the file appears complete or not at all, and an older file
// is kept on error. kInvalidArgument for bf16, which NumPy lacks; otherwise the
// system's error, naming the file.
absl::Status WriteNpy(std::string_view path, const Tensor& tensor);

}  // namespace hawser::tensor

#endif  // HAWSER_TENSOR_IO_NPY_H_
