#ifndef HAWSER_NN_INIT_H_
#define HAWSER_NN_INIT_H_

#include "absl/status/status.h"
#include "tensor/ops/random.h"
#include "tensor/tensor.h"

// First values of parameters: each function overwrites a floating-point tensor
// in place, without recording it. The same generator state gives the same
// values. The fan-in of a weight [out, in, ...] is in times the elements of one
// kernel, its fan-out is out times them.
//
// kInvalidArgument: a dtype that is not floating point, an option out of its
// range, or, for those that need a fan, a tensor of rank below 2.
namespace hawser::nn {

absl::Status FillConstant(Tensor& tensor, double value);

// In [low, high).
absl::Status FillUniform(Tensor& tensor, double low, double high,
                         tensor::Generator& generator);

absl::Status FillNormal(Tensor& tensor, double mean, double stddev,
                        tensor::Generator& generator);

// Normal, but only within [low, high], which may be far from the mean.
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

// Uniform or normal with standard deviation gain / sqrt(fan): sqrt(2) is the
// gain for ReLU, sqrt(2 / (1 + a^2)) for a leaky one of slope a. He et al.,
// 2015.
struct KaimingOptions {
  double gain = 1.4142135623730951;
  Fan fan = Fan::kIn;
};
absl::Status FillKaimingUniform(Tensor& tensor, const KaimingOptions& options,
                                tensor::Generator& generator);
absl::Status FillKaimingNormal(Tensor& tensor, const KaimingOptions& options,
                               tensor::Generator& generator);

// Orthonormal rows, or columns if there are fewer of them, times `gain`; dims
// after the first count as one. Uniform over such matrices. Saxe et al., 2014.
absl::Status FillOrthogonal(Tensor& tensor, double gain,
                            tensor::Generator& generator);

}  // namespace hawser::nn

#endif  // HAWSER_NN_INIT_H_
