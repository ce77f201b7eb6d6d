// Reading and writing of tensor elements in files.

#ifndef HAWSER_TENSOR_IO_TENSOR_FILE_H_
#define HAWSER_TENSOR_IO_TENSOR_FILE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fs/atomic_file.h"
#include "fs/input_file.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::tensor::internal {

// Reads the dense, row-major, little-endian elements that start at byte
// `offset`. The caller has checked that the file is long enough. Nonzero bytes
// of a bool become 1.
absl::StatusOr<Tensor> ReadElements(const fs::InputFile& file, uint64_t offset,
                                    DType dtype, const Shape& shape);

// Makes each nonzero byte of a contiguous bool tensor 1.
void NormalizeBools(Tensor& tensor);

// Appends the elements of `tensor`, of any strides and device, in the same
// format.
absl::Status AppendElements(const Tensor& tensor, fs::AtomicFile& file);

}  // namespace hawser::tensor::internal

#endif  // HAWSER_TENSOR_IO_TENSOR_FILE_H_
