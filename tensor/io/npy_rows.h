// Access to single rows of an npy file.

#ifndef HAWSER_TENSOR_IO_NPY_ROWS_H_
#define HAWSER_TENSOR_IO_NPY_ROWS_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::tensor {

namespace internal {
struct NpyFile;
}  // namespace internal

// An array in a file that stays open, of which row i is element i of the first
// dimension. Rows are read when they are asked for, so that the file may be
// larger than the memory. They are read by position instead of through mapped
// memory: if another process truncates the file, that is an error, not a
// signal.
//
// Thread-safe.
class NpyRows {
 public:
  // Opens a file and checks its header. Errors of ReadNpy (tensor/io/npy.h),
  // and kInvalidArgument if the array is a scalar, or has more than one
  // dimension and is in column-major order, in which no row is in one piece.
  static absl::StatusOr<NpyRows> Open(std::string path);
  NpyRows(NpyRows&&) noexcept;
  NpyRows& operator=(NpyRows&&) = delete;
  ~NpyRows();

  const std::string& path() const;
  DType dtype() const;
  // The shape of the whole array.
  const Shape& shape() const;
  int64_t num_rows() const { return shape()[0]; }

  // Returns the rows `rows`, in that order, as a contiguous tensor on the CPU
  // of shape [rows.size(), shape()[1], ...]. Neighbouring rows that follow each
  // other are read at once.
  //
  // kOutOfRange: a row is not in [0, num_rows()). kResourceExhausted: not
  // enough memory. kDataLoss: the file was truncated since it was opened. Other
  // errors are those of the system, naming the file.
  absl::StatusOr<Tensor> Read(std::span<const int64_t> rows) const;

 private:
  explicit NpyRows(std::unique_ptr<const internal::NpyFile> npy);

  std::unique_ptr<const internal::NpyFile> npy_;
};

}  // namespace hawser::tensor

#endif  // HAWSER_TENSOR_IO_NPY_ROWS_H_
