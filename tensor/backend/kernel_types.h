// Enumerations and options shared by the operations of tensor/ops/ and their
// kernels.
#ifndef HAWSER_TENSOR_BACKEND_KERNEL_TYPES_H_
#define HAWSER_TENSOR_BACKEND_KERNEL_TYPES_H_

#include <array>
#include <cstdint>

namespace hawser::tensor {

enum class UnaryOp : uint8_t {
  kNeg,
  kExp,
  kLog,
  kSqrt,
  kRsqrt,
  kAbs,
  kSign,
  kSin,
  kCos,
  kReciprocal,
  kSquare,
  kRelu,
  kSigmoid,
  kTanh,
  kGelu,  // x * Phi(x), with erf
  kSilu,  // x * sigmoid(x)
};

// The gradients take (tensor saved by the forward pass, gradient of its
// output).
enum class BinaryOp : uint8_t {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMaximum,  // NaN if either is
  kMinimum,  // NaN if either is
  kPow,
  kReluGrad,     // (output, dout)
  kSigmoidGrad,  // (output, dout)
  kTanhGrad,     // (output, dout)
  kGeluGrad,     // (input, dout)
  kSiluGrad,     // (input, dout)
};

enum class CompareOp : uint8_t { kEq, kNe, kLt, kLe, kGt, kGe };

enum class ReduceOp : uint8_t {
  kSum,
  kMean,
  kMax,  // NaN if any element is
  kMin,  // NaN if any element is
};

enum class SoftmaxKind : uint8_t { kSoftmax, kLogSoftmax };

enum class Activation : uint8_t { kNone, kRelu };

// Reduction of the rows of one bag to one row. An empty bag gives zeros.
enum class BagMode : uint8_t { kSum, kMean, kMax };

enum class RandomKind : uint8_t {
  kUniform,    // in [a, b)
  kNormal,     // mean a, standard deviation b
  kBernoulli,  // 1 with probability a, else 0
};

// Height first, then width.
struct Conv2dOptions {
  std::array<int64_t, 2> stride = {1, 1};
  std::array<int64_t, 2> padding = {0, 0};  // zeros, on both sides
  std::array<int64_t, 2> dilation = {1, 1};
  int64_t groups = 1;
};

// Height first, then width.
struct Pool2dOptions {
  std::array<int64_t, 2> kernel = {1, 1};
  std::array<int64_t, 2> stride = {0, 0};   // 0: the kernel size
  std::array<int64_t, 2> padding = {0, 0};  // at most half the kernel
  // Whether an average includes padding in its divisor. Ignored for a maximum.
  bool count_include_pad = true;
};

}  // namespace hawser::tensor

#endif  // HAWSER_TENSOR_BACKEND_KERNEL_TYPES_H_
