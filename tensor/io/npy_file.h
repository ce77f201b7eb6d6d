// An npy file whose header has been read.

#ifndef HAWSER_TENSOR_IO_NPY_FILE_H_
#define HAWSER_TENSOR_IO_NPY_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "fs/input_file.h"
#include "tensor/io/npy_header.h"
#include "tensor/tensor.h"

namespace hawser::tensor::internal {

struct NpyFile {
  fs::InputFile file;
  NpyHeader header;
  // The offset of the elements, which fill the rest of the file.
  uint64_t data_offset;
};

// Opens a file and checks that its length fits its header. Errors as those of
// ReadNpy (tensor/io/npy.h).
absl::StatusOr<NpyFile> OpenNpy(std::string path);

// Reverses the bytes of each element.
void SwapByteOrder(Tensor& tensor);

}  // namespace hawser::tensor::internal

#endif  // HAWSER_TENSOR_IO_NPY_FILE_H_
