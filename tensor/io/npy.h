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

// Reads a contiguous tensor on the CPU, whichever order and byte order the file
// has. Memory is allocated only for data the file really has.
//
// Errors, in one line that names the file:
//   kInvalidArgument  not an npy file, a header that is not the dictionary of
//                     descr, fortran_order and shape, a dtype of which there is
//                     none here, pickled objects, or a file of another length
//                     than the header tells.
//   kNotFound, kPermissionDenied, ...  as the system says.
//   kDataLoss         the file became shorter while it was read.
absl::StatusOr<Tensor> ReadNpy(std::string_view path);

// Writes `tensor`, of any strides and device, in version 1.0. The file appears
// complete or not at all, and an older one stays on error, as
// SaveSafetensors() does. kInvalidArgument for bf16, which NumPy has not;
// otherwise what the system says, naming the file.
absl::Status WriteNpy(std::string_view path, const Tensor& tensor);

}  // namespace hawser::tensor

#endif  // HAWSER_TENSOR_IO_NPY_H_
