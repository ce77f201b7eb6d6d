#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/status_macros.h"
#include "collectives/reduce_op.h"
#include "parallel/communication_hooks.h"
#include "tensor/device.h"
#include "tensor/dtype.h"
#include "tensor/ops/in_place.h"
#include "tensor/ops/matmul.h"
#include "tensor/ops/random.h"
#include "tensor/tensor.h"

namespace hawser::parallel {
namespace {

using collectives::ProcessGroup;
using collectives::ReduceOp;
using tensor::DType;

// Makes the columns of a matrix orthonormal: the modified method of Gram and
// Schmidt.
template <class T>
void Orthonormalize(T* matrix, int64_t rows, int64_t columns) {
  // Of a column that the ones before span.
  constexpr T kTiny = static_cast<T>(1e-8);
  for (int64_t column = 0; column < columns; ++column) {
    for (int64_t before = 0; before < column; ++before) {
      T product = 0;
      for (int64_t i = 0; i < rows; ++i) {
        product += matrix[i * columns + before] * matrix[i * columns + column];
      }
      for (int64_t i = 0; i < rows; ++i) {
        matrix[i * columns + column] -= product * matrix[i * columns + before];
      }
    }
    T square = 0;
    for (int64_t i = 0; i < rows; ++i) {
      square += matrix[i * columns + column] * matrix[i * columns + column];
    }
    const T scale = 1 / (std::sqrt(square) + kTiny);
    for (int64_t i = 0; i < rows; ++i) matrix[i * columns + column] *= scale;
  }
}

// The same for a factor on any device. It is thin, and goes through a copy on
// the CPU, which is none if it lies there.
absl::Status Orthonormalize(Tensor& factor) {
  ASSIGN_OR_RETURN(Tensor host, factor.To(tensor::kCpu));
  if (host.dtype() == DType::kF32) {
    Orthonormalize(host.data<float>(), host.dim(0), host.dim(1));
  } else {
    Orthonormalize(host.data<double>(), host.dim(0), host.dim(1));
  }
  return host.is_same(factor) ? absl::OkStatus() : factor.CopyFrom(host);
}

// What is known of one parameter.
struct Matrix {
  // The gradient as a matrix, and what earlier passes have lost of it.
  Tensor gradient;
  Tensor lost;
  // Of rank columns.
  Tensor left;
  Tensor right;
};

// The state of one object's hook.
class PowerSgd {
 public:
  explicit PowerSgd(const PowerSgdOptions& options)
      : options_(options), generator_(options.seed) {}

  absl::Status Reduce(ProcessGroup& group, const GradientBucket& bucket) {
    const DType dtype = bucket.flat.dtype();
    if (options_.rank < 1 || options_.first_pass < 2 ||
        (dtype != DType::kF32 && dtype != DType::kF64)) {
      return absl::InvalidArgumentError(
          "PowerSgdHook needs gradients in f32 or f64, a rank of at least 1 "
          "and "
          "a first pass of at least 2");
    }
    Bucket& state = buckets_[bucket.index];
    if (state.passes++ < options_.first_pass) {
      return group.AllReduce(bucket.flat, ReduceOp::kAverage);
    }
    return Compress(group, bucket, state);
  }

 private:
  struct Bucket {
    int64_t passes = 0;
    // Of the gradients that are worth it; the others are in `plain`.
    std::vector<Matrix> matrices;
    std::vector<Tensor> plain;
    bool prepared = false;
  };

  absl::Status Prepare(const GradientBucket& bucket, Bucket& state) {
    state.prepared = true;
    for (const Tensor& gradient : bucket.gradients) {
      const int64_t rows = gradient.rank() < 2 ? 1 : gradient.dim(0);
      const int64_t columns = rows == 0 ? 0 : gradient.num_elements() / rows;
      if (rows == 1 || (rows + columns) * options_.rank >= rows * columns) {
        state.plain.push_back(gradient);
        continue;
      }
      Matrix matrix;
      ASSIGN_OR_RETURN(matrix.gradient, gradient.View({rows, columns}));
      const tensor::TensorOptions of{.dtype = gradient.dtype(),
                                     .device = gradient.device()};
      ASSIGN_OR_RETURN(matrix.lost, Tensor::TryEmpty({rows, columns}, of));
      RETURN_IF_ERROR(tensor::FillInPlace(matrix.lost, 0));
      ASSIGN_OR_RETURN(matrix.right, tensor::Normal({columns, options_.rank}, 0,
                                                    1, generator_, of));
      state.matrices.push_back(std::move(matrix));
    }
    return absl::OkStatus();
  }

  absl::Status Compress(ProcessGroup& group, const GradientBucket& bucket,
                        Bucket& state) {
    if (!state.prepared) RETURN_IF_ERROR(Prepare(bucket, state));
    std::vector<Tensor> sent = state.plain;
    for (Matrix& matrix : state.matrices) {
      RETURN_IF_ERROR(tensor::AddInPlace(matrix.gradient, matrix.lost));
      RETURN_IF_ERROR(Orthonormalize(matrix.right));
      ASSIGN_OR_RETURN(matrix.left,
                       tensor::MatMul(matrix.gradient, matrix.right));
      sent.push_back(matrix.left);
    }
    RETURN_IF_ERROR(group.AllReduce(sent, ReduceOp::kAverage));
    sent.clear();
    for (Matrix& matrix : state.matrices) {
      RETURN_IF_ERROR(Orthonormalize(matrix.left));
      ASSIGN_OR_RETURN(const Tensor transposed, matrix.gradient.T());
      ASSIGN_OR_RETURN(matrix.right, tensor::MatMul(transposed, matrix.left));
      sent.push_back(matrix.right);
    }
    if (!sent.empty()) {
      RETURN_IF_ERROR(group.AllReduce(sent, ReduceOp::kAverage));
    }
    for (Matrix& matrix : state.matrices) {
      ASSIGN_OR_RETURN(const Tensor transposed, matrix.right.T());
      ASSIGN_OR_RETURN(const Tensor product,
                       tensor::MatMul(matrix.left, transposed));
      RETURN_IF_ERROR(matrix.lost.CopyFrom(matrix.gradient));
      RETURN_IF_ERROR(tensor::AddInPlace(matrix.lost, product, -1));
      RETURN_IF_ERROR(matrix.gradient.CopyFrom(product));
    }
    return absl::OkStatus();
  }

  const PowerSgdOptions options_;
  tensor::Generator generator_;
  std::map<int, Bucket> buckets_;
};

}  // namespace

CommunicationHook PowerSgdHook(PowerSgdOptions options) {
  return [state = std::make_shared<PowerSgd>(options)](
             ProcessGroup& group, const GradientBucket& bucket) {
    return group.RunInOrder(
        [state, &group, bucket] { return state->Reduce(group, bucket); });
  };
}

}  // namespace hawser::parallel
