#ifndef HAWSER_NN_INIT_H_
#define HAWSER_NN_INIT_H_

#include "absl/status/status.h"
#include "tensor/ops/random.h"
#include "tensor/tensor.h"

// Initial values of parameters. Each function overwrites a floating-point
// tensor in place, without recording the operation. Equal generator states give
// equal values. The fan-in of a weight [out, in, ...] is `in` times the number
// of elements of one kernel; its fan-out is `out` times that number.
//
// kInvalidArgument: the dtype is not floating point, an option is out of range,
// or a function that uses a fan gets a tensor of rank below 2.
namespace hawser::nn {

absl::Status FillConstant(Tensor& tensor, double value);

// Uniform in [low, high).
absl::Status FillUniform(Tensor& tensor, double low, double high,
                         tensor::Generator& generator);

absl::Status FillNormal(Tensor& tensor, double mean, double stddev,
                        tensor::Generator& generator);

// Normal, restricted to [low, high], which may be far from the mean.
struct TruncatedNormalOptions {
  double mean = 0;
  double stddev = 1;
  double low = -2;
  double high = 2;
};
absl::Status FillTruncatedNormal(Tensor& tensor,
                                 const TruncatedNormalOptions& options,
                                 tensor::Generator& generator);

// Uniform or normal with standard deviation
// gain * sqrt(2 / (fan_in + fan_out)). Glorot and Bengio, 2010.
absl::Status FillXavierUniform(Tensor& tensor, double gain,
                               tensor::Generator& generator);
absl::Status FillXavierNormal(Tensor& tensor, double gain,
                              tensor::Generator& generator);

enum class Fan { kIn, kOut };

// Uniform or normal with standard deviation gain / sqrt(fan). The gain is
// sqrt(2) for ReLU, and sqrt(2 / (1 + a^2)) for leaky ReLU of slope a. He et
// al., 2015.
struct KaimingOptions {
  double gain = 1.4142135623730951;
  Fan fan = Fan::kIn;
};
absl::Status FillKaimingUniform(Tensor& tensor, const KaimingOptions& options,
                                tensor::Generator& generator);
absl::Status FillKaimingNormal(Tensor& tensor, const KaimingOptions& options,
                               tensor::Generator& generator);

// A matrix with orthonormal rows, or columns if these are fewer, times `gain`,
// drawn uniformly from all such matrices. Dims after the first are joined. Saxe
// et al., 2014.
absl::Status FillOrthogonal(Tensor& tensor, double gain,
                            tensor::Generator& generator);

}  // namespace hawser::nn

#endif  // HAWSER_NN_INIT_H_
