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
#include "tensor/dtype.h"
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

template <class T>
void Subtract(Tensor& from, const Tensor& what) {
  T* const to = from.data<T>();
  const T* const values = what.data<T>();
  for (int64_t i = 0; i < from.num_elements(); ++i) to[i] -= values[i];
}

template <class T>
void Add(Tensor& to, const Tensor& what) {
  T* const sum = to.data<T>();
  const T* const values = what.data<T>();
  for (int64_t i = 0; i < to.num_elements(); ++i) sum[i] += values[i];
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
    return dtype == DType::kF32 ? Compress<float>(group, bucket, state)
                                : Compress<double>(group, bucket, state);
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
      const tensor::TensorOptions of{.dtype = gradient.dtype()};
      matrix.lost = Tensor::Zeros({rows, columns}, of);
      ASSIGN_OR_RETURN(matrix.right, tensor::Normal({columns, options_.rank}, 0,
                                                    1, generator_, of));
      state.matrices.push_back(std::move(matrix));
    }
    return absl::OkStatus();
  }

  template <class T>
  absl::Status Compress(ProcessGroup& group, const GradientBucket& bucket,
                        Bucket& state) {
    if (!state.prepared) RETURN_IF_ERROR(Prepare(bucket, state));
    std::vector<Tensor> sent = state.plain;
    for (Matrix& matrix : state.matrices) {
      Add<T>(matrix.gradient, matrix.lost);
      Orthonormalize(matrix.right.data<T>(), matrix.right.dim(0),
                     options_.rank);
      ASSIGN_OR_RETURN(matrix.left,
                       tensor::MatMul(matrix.gradient, matrix.right));
      sent.push_back(matrix.left);
    }
    RETURN_IF_ERROR(group.AllReduce(sent, ReduceOp::kAverage));
    sent.clear();
    for (Matrix& matrix : state.matrices) {
      Orthonormalize(matrix.left.data<T>(), matrix.left.dim(0), options_.rank);
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
      Subtract<T>(matrix.lost, product);
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
