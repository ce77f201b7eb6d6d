// Tensors in the safetensors file format, which cannot contain code.
//
// A file is 8 bytes of header length (little-endian), a JSON header that gives
// dtype, shape and data offsets per tensor name, and the data. Format:
// github.com/huggingface/safetensors.

#ifndef HAWSER_TENSOR_IO_SAFETENSORS_H_
#define HAWSER_TENSOR_IO_SAFETENSORS_H_

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensor/tensor.h"

namespace hawser::tensor {

struct SafetensorsFile {
  // Names are unique, and not "__metadata__".
  std::vector<std::pair<std::string, Tensor>> tensors;
  // The entry "__metadata__" of the header: free text.
  std::map<std::string, std::string> metadata;

  // Returns the tensor of that name, or null.
  const Tensor* Find(std::string_view name) const;
};

// Reads a file. Tensors are on the CPU, in the order of their data, each filled
// by one read. Memory is allocated only for data that the file really contains.
//
// Errors, in one line that names the file:
//   kInvalidArgument  the file is malformed: a header larger than 100 MB or
//                     than the file, unexpected JSON, a duplicate name, an
//                     unsupported dtype, or sizes and offsets that disagree,
//                     overlap or leave gaps. The message says which.
//   kNotFound, kPermissionDenied, ...  errors of the system.
//   kDataLoss         the file was truncated while it was read.
absl::StatusOr<SafetensorsFile> LoadSafetensors(std::string_view path);

// Writes a file that appears under `path` complete or not at all: writes and
// syncs a temporary file in the same directory, renames it, and syncs the
// directory. On error an older file of that name is kept. Tensors may have any
// strides and device; those with large elements are placed first, so that all
// data is aligned. The file's mode is 0600.
//
// kInvalidArgument for an undefined tensor, or a name that is duplicate,
// reserved or not UTF-8; otherwise the system's error, such as
// kResourceExhausted for a full disk, naming the file.
absl::Status SaveSafetensors(std::string_view path,
                             const SafetensorsFile& file);

}  // namespace hawser::tensor

#endif  // HAWSER_TENSOR_IO_SAFETENSORS_H_
