#ifndef HAWSER_DATA_IDX_H_
#define HAWSER_DATA_IDX_H_

#include <string>

#include "absl/status/statusor.h"
#include "tensor/tensor.h"

namespace hawser::data {

// Reads an IDX file, the format of the MNIST distribution, plain or
// gzip-compressed (detected by content, not by name).
//
// Returns a contiguous CPU tensor of the file's shape. Element types: unsigned
// byte (u8), int (i32), float (f32) and double (f64); the file's big-endian
// numbers are converted to host order.
//
//   kNotFound          the file does not exist.
//   kPermissionDenied  the file may not be read.
//   kInvalidArgument   not an IDX file, an unsupported element type, a damaged
//                      gzip stream, or more or fewer bytes than the header
//                      declares. Partial data is never returned.
//
// At most the declared payload is held in memory: a decompression bomb is
// rejected as soon as it exceeds its declared size.
//
// Format: http://yann.lecun.com/exdb/mnist/ (section "the IDX file format").
absl::StatusOr<Tensor> ReadIdx(const std::string& path);

}  // namespace hawser::data

#endif  // HAWSER_DATA_IDX_H_
