#include "tensor/backend/cpu/scalar_elementwise.h"

#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "async/check.h"

namespace hawser::tensor::cpu {
namespace {

template <class C, class F>
void Map(const C* in, C* out, int64_t n, F f) {
  for (int64_t i = 0; i < n; ++i) out[i] = f(in[i]);
}

template <class C, class R, class F>
void Map2(const C* a, const C* b, R* out, int64_t n, F f) {
  for (int64_t i = 0; i < n; ++i) out[i] = f(a[i], b[i]);
}

constexpr double kSqrtHalf = 0.70710678118654752440;
constexpr double kInverseSqrtTwoPi = 0.39894228040143267794;

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double NormalCdf(double x) { return 0.5 * std::erfc(-x * kSqrtHalf); }
double Sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : x; }

double GeluSlope(double x) {
  return NormalCdf(x) + x * kInverseSqrtTwoPi * std::exp(-0.5 * x * x);
}

double SiluSlope(double x) {
  const double s = Sigmoid(x);
  return s + x * s * (1 - s);
}

// Wrapping arithmetic, which is undefined for signed integers.
int64_t Wrap(uint64_t x) { return static_cast<int64_t>(x); }
uint64_t Bits(int64_t x) { return static_cast<uint64_t>(x); }

}  // namespace

void Unary(UnaryOp op, const double* in, double* out, int64_t n) {
  switch (op) {
    case UnaryOp::kNeg:
      return Map(in, out, n, [](double x) { return -x; });
    case UnaryOp::kExp:
      return Map(in, out, n, [](double x) { return std::exp(x); });
    case UnaryOp::kLog:
      return Map(in, out, n, [](double x) { return std::log(x); });
    case UnaryOp::kSqrt:
      return Map(in, out, n, [](double x) { return std::sqrt(x); });
    case UnaryOp::kRsqrt:
      return Map(in, out, n, [](double x) { return 1 / std::sqrt(x); });
    case UnaryOp::kAbs:
      return Map(in, out, n, [](double x) { return std::fabs(x); });
    case UnaryOp::kSign:
      return Map(in, out, n, Sign);
    case UnaryOp::kSin:
      return Map(in, out, n, [](double x) { return std::sin(x); });
    case UnaryOp::kCos:
      return Map(in, out, n, [](double x) { return std::cos(x); });
    case UnaryOp::kReciprocal:
      return Map(in, out, n, [](double x) { return 1 / x; });
    case UnaryOp::kSquare:
      return Map(in, out, n, [](double x) { return x * x; });
    case UnaryOp::kRelu:
      return Map(in, out, n, [](double x) { return x < 0 ? 0 : x; });
    case UnaryOp::kSigmoid:
      return Map(in, out, n, Sigmoid);
    case UnaryOp::kTanh:
      return Map(in, out, n, [](double x) { return std::tanh(x); });
    case UnaryOp::kGelu:
      return Map(in, out, n, [](double x) { return x * NormalCdf(x); });
    case UnaryOp::kSilu:
      return Map(in, out, n, [](double x) { return x * Sigmoid(x); });
  }
  std::abort();
}

void Unary(UnaryOp op, const int64_t* in, int64_t* out, int64_t n) {
  switch (op) {
    case UnaryOp::kNeg:
      return Map(in, out, n, [](int64_t x) { return Wrap(-Bits(x)); });
    case UnaryOp::kAbs:
      return Map(in, out, n,
                 [](int64_t x) { return x < 0 ? Wrap(-Bits(x)) : x; });
    case UnaryOp::kSign:
      return Map(in, out, n,
                 [](int64_t x) { return int64_t{x > 0} - (x < 0); });
    case UnaryOp::kSquare:
      return Map(in, out, n, [](int64_t x) { return Wrap(Bits(x) * Bits(x)); });
    case UnaryOp::kRelu:
      return Map(in, out, n, [](int64_t x) { return x < 0 ? 0 : x; });
    default:
      HAWSER_CHECK(false) << "unary function of integers";
  }
}

void Binary(BinaryOp op, const double* a, const double* b, double* out,
            int64_t n) {
  switch (op) {
    case BinaryOp::kAdd:
      return Map2(a, b, out, n, [](double x, double y) { return x + y; });
    case BinaryOp::kSub:
      return Map2(a, b, out, n, [](double x, double y) { return x - y; });
    case BinaryOp::kMul:
      return Map2(a, b, out, n, [](double x, double y) { return x * y; });
    case BinaryOp::kDiv:
      return Map2(a, b, out, n, [](double x, double y) { return x / y; });
    case BinaryOp::kMaximum:
      return Map2(a, b, out, n, [](double x, double y) {
        return x > y || std::isnan(x) ? x : y;
      });
    case BinaryOp::kMinimum:
      return Map2(a, b, out, n, [](double x, double y) {
        return x < y || std::isnan(x) ? x : y;
      });
    case BinaryOp::kPow:
      return Map2(a, b, out, n,
                  [](double x, double y) { return std::pow(x, y); });
    case BinaryOp::kReluGrad:
      return Map2(a, b, out, n,
                  [](double x, double y) { return x <= 0 ? 0 : y; });
    case BinaryOp::kSigmoidGrad:
      return Map2(a, b, out, n,
                  [](double x, double y) { return y * x * (1 - x); });
    case BinaryOp::kTanhGrad:
      return Map2(a, b, out, n,
                  [](double x, double y) { return y * (1 - x * x); });
    case BinaryOp::kGeluGrad:
      return Map2(a, b, out, n,
                  [](double x, double y) { return y * GeluSlope(x); });
    case BinaryOp::kSiluGrad:
      return Map2(a, b, out, n,
                  [](double x, double y) { return y * SiluSlope(x); });
  }
  std::abort();
}

void Binary(BinaryOp op, const int64_t* a, const int64_t* b, int64_t* out,
            int64_t n) {
  switch (op) {
    case BinaryOp::kAdd:
      return Map2(a, b, out, n,
                  [](int64_t x, int64_t y) { return Wrap(Bits(x) + Bits(y)); });
    case BinaryOp::kSub:
      return Map2(a, b, out, n,
                  [](int64_t x, int64_t y) { return Wrap(Bits(x) - Bits(y)); });
    case BinaryOp::kMul:
      return Map2(a, b, out, n,
                  [](int64_t x, int64_t y) { return Wrap(Bits(x) * Bits(y)); });
    case BinaryOp::kMaximum:
      return Map2(a, b, out, n,
                  [](int64_t x, int64_t y) { return x > y ? x : y; });
    case BinaryOp::kMinimum:
      return Map2(a, b, out, n,
                  [](int64_t x, int64_t y) { return x < y ? x : y; });
    default:
      HAWSER_CHECK(false) << "binary function of integers";
  }
}

template <class C>
void Compare(CompareOp op, const C* a, const C* b, bool* out, int64_t n) {
  switch (op) {
    case CompareOp::kEq:
      return Map2(a, b, out, n, [](C x, C y) { return x == y; });
    case CompareOp::kNe:
      return Map2(a, b, out, n, [](C x, C y) { return x != y; });
    case CompareOp::kLt:
      return Map2(a, b, out, n, [](C x, C y) { return x < y; });
    case CompareOp::kLe:
      return Map2(a, b, out, n, [](C x, C y) { return x <= y; });
    case CompareOp::kGt:
      return Map2(a, b, out, n, [](C x, C y) { return x > y; });
    case CompareOp::kGe:
      return Map2(a, b, out, n, [](C x, C y) { return x >= y; });
  }
  std::abort();
}

template void Compare(CompareOp, const float*, const float*, bool*, int64_t);
template void Compare(CompareOp, const double*, const double*, bool*, int64_t);
template void Compare(CompareOp, const int64_t*, const int64_t*, bool*,
                      int64_t);

}  // namespace hawser::tensor::cpu
