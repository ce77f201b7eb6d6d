// Tensors in the safetensors file format, which holds no code.
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
  // The entry "__metadata__" of the header: text about the file.
  std::map<std::string, std::string> metadata;

  // The tensor of that name, or null.
  const Tensor* Find(std::string_view name) const;
};

// Reads a file; its tensors come in the order of their data, on the CPU, each
// filled by one read. Memory is allocated only for data the file really has.
//
// Errors, in one line that names the file:
//   kInvalidArgument  the file breaks the format: header beyond 100 MB or the
//                     file, not the expected JSON, a name twice, a dtype of
//                     which there is none here, sizes and offsets that
//                     disagree, overlap or leave gaps. Says which.
//   kNotFound, kPermissionDenied, ...  as the system says.
//   kDataLoss         the file became shorter while it was read.
absl::StatusOr<SafetensorsFile> LoadSafetensors(std::string_view path);

// Writes a file that appears under `path` complete or not at all: a temporary
// file in the same folder, synced, renamed, and the folder synced. On error an
// older file of that name stays. Tensors may have any strides and device; large
// elements are placed first, so that all data is aligned. The file's mode is
// 0600.
//
// kInvalidArgument for an undefined tensor, a name given twice, reserved or not
// UTF-8; otherwise what the system says, such as kResourceExhausted for a full
// disk, naming the file.
absl::Status SaveSafetensors(std::string_view path,
                             const SafetensorsFile& file);

}  // namespace hawser::tensor

#endif  // HAWSER_TENSOR_IO_SAFETENSORS_H_
