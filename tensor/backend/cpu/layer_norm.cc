#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/status_macros.h"
#include "tensor/backend/cpu/block_io.h"
#include "tensor/backend/cpu/cpu_backend.h"
#include "tensor/backend/cpu/row_kernels.h"

namespace hawser::tensor::cpu {
namespace {

// A dense vector as `C`s; null for an undefined tensor.
template <class C>
class Row {
 public:
  explicit Row(const Tensor& t) {
    if (!t.defined()) return;
    buffer_.resize(static_cast<size_t>(t.num_elements()));
    data_ = ReadBlock(t.dtype(), t.raw_data(), 0, t.strides()[0],
                      t.num_elements(), buffer_.data());
  }
  const C* data() const { return data_; }

 private:
  std::vector<C> buffer_;
  const C* data_ = nullptr;
};

// Rows of a dense matrix, read as `C`s one at a time.
template <class C>
class RowReader {
 public:
  explicit RowReader(const Tensor& t)
      : tensor_(t), buffer_(static_cast<size_t>(t.dim(1))) {}
  const C* Read(int64_t i) {
    const int64_t n = tensor_.dim(1);
    return ReadBlock(tensor_.dtype(), tensor_.raw_data(), i * n, 1, n,
                     buffer_.data());
  }

 private:
  const Tensor& tensor_;
  std::vector<C> buffer_;
};

// Rows of a dense matrix, written from `C`s one at a time.
template <class C>
class RowWriter {
 public:
  explicit RowWriter(Tensor& t)
      : tensor_(t), buffer_(static_cast<size_t>(t.dim(1))) {}
  // Buffer for row i, to be filled before Finish(i).
  C* At(int64_t i) {
    return IsComputeType<C>(tensor_.dtype())
               ? static_cast<C*>(tensor_.raw_data()) + i * tensor_.dim(1)
               : buffer_.data();
  }
  void Finish(int64_t i) {
    if (IsComputeType<C>(tensor_.dtype())) return;
    const int64_t n = tensor_.dim(1);
    WriteBlock(tensor_.dtype(), tensor_.raw_data(), i * n, 1, n,
               buffer_.data());
  }

 private:
  Tensor& tensor_;
  std::vector<C> buffer_;
};

}  // namespace

absl::Status CpuBackend::LayerNorm(const Tensor& x, const Tensor& weight,
                                   const Tensor& bias, double eps, Tensor& y,
                                   Tensor& mean, Tensor& rstd) {
  ASSIGN_OR_RETURN(const Tensor dense, x.Contiguous());
  VisitFloatComputeType(x.dtype(), [&]<class C>() {
    const Row<C> w(weight), b(bias);
    RowReader<C> reader(dense);
    RowWriter<C> writer(y);
    C* const means = mean.data<C>();
    C* const rstds = rstd.data<C>();
    for (int64_t i = 0; i < x.dim(0); ++i) {
      const Moments<C> moments = LayerNormRow(
          reader.Read(i), x.dim(1), w.data(), b.data(), eps, writer.At(i));
      writer.Finish(i);
      means[i] = moments.mean;
      rstds[i] = moments.rstd;
    }
  });
  return absl::OkStatus();
}

absl::Status CpuBackend::LayerNormGrad(const Tensor& dy, const Tensor& x,
                                       const Tensor& mean, const Tensor& rstd,
                                       const Tensor& weight, Tensor& dx,
                                       Tensor& dw, Tensor& db) {
  ASSIGN_OR_RETURN(const Tensor dense_dy, dy.Contiguous());
  ASSIGN_OR_RETURN(const Tensor dense_x, x.Contiguous());
  VisitFloatComputeType(x.dtype(), [&]<class C>() {
    const Row<C> w(weight), means(mean), rstds(rstd);
    RowReader<C> dy_rows(dense_dy), x_rows(dense_x);
    RowWriter<C> dx_rows(dx);
    const int64_t n = x.dim(1);
    std::vector<C> dw_sums(static_cast<size_t>(n)),
        db_sums(static_cast<size_t>(n));
    for (int64_t i = 0; i < x.dim(0); ++i) {
      LayerNormGradRow(dy_rows.Read(i), x_rows.Read(i), n,
                       {means.data()[i], rstds.data()[i]}, w.data(),
                       dx_rows.At(i), dw_sums.data(), db_sums.data());
      dx_rows.Finish(i);
    }
    WriteBlock(dw.dtype(), dw.raw_data(), 0, 1, n, dw_sums.data());
    WriteBlock(db.dtype(), db.raw_data(), 0, 1, n, db_sums.data());
  });
  return absl::OkStatus();
}

}  // namespace hawser::tensor::cpu
