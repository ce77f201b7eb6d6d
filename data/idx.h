#ifndef HAWSER_DATA_IDX_H_
#define HAWSER_DATA_IDX_H_

#include <string>

#include "absl/status/statusor.h"
#include "tensor/tensor.h"

namespace hawser::data {

// Reads an IDX file, the format of the MNIST distribution, plain or gzip
// compressed (told apart by content, not by name).
//
// Returns a contiguous CPU tensor of the file's shape. Element types: unsigned
// byte (u8), int (i32), float (f32) and double (f64); the file's big-endian
// numbers arrive in host order.
//
//   kNotFound          the file cannot be opened for being absent.
//   kPermissionDenied  the file may not be read.
//   kInvalidArgument   not an IDX file, an element type this reader lacks, a
//                      damaged gzip stream, or more or fewer bytes than the
//                      header declares. Nothing of a damaged file is returned.
//
// At most the declared payload is held in memory: a small compressed file that
// expands without end is refused as soon as it passes its declared size.
//
// Format: http://yann.lecun.com/exdb/mnist/ (section "the IDX file format").
absl::StatusOr<Tensor> ReadIdx(const std::string& path);

}  // namespace hawser::data

#endif  // HAWSER_DATA_IDX_H_
