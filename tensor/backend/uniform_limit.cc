#include "tensor/backend/uniform_limit.h"

#include <cmath>
#include <cstdint>
#include <limits>

#include "tensor/dtype.h"
#include "tensor/half.h"

namespace hawser::tensor {
namespace {

float Before(float x) {
  return std::nextafter(x, -std::numeric_limits<float>::infinity());
}
double Before(double x) {
  return std::nextafter(x, -std::numeric_limits<double>::infinity());
}

// Of the 16-bit types, which are a sign and a magnitude; NaN for -infinity.
template <class T>
T Before(T x) {
  if ((x.bits & 0x7fff) == 0) return T::FromBits(0x8001);
  const bool negative = (x.bits & 0x8000) != 0;
  return T::FromBits(static_cast<uint16_t>(negative ? x.bits + 1 : x.bits - 1));
}

// `Wide` holds what `T` does.
template <class T, class Wide>
double LimitIn(double low, double high) {
  const T first(static_cast<Wide>(low)), end(static_cast<Wide>(high));
  const Wide least = static_cast<Wide>(first);
  const Wide last = static_cast<Wide>(Before(end));
  return static_cast<double>(last > least ? last : least);
}

}  // namespace

double UniformLimit(DType dtype, double low, double high) {
  switch (dtype) {
    case DType::kF64:
      return LimitIn<double, double>(low, high);
    case DType::kF16:
      return LimitIn<Half, float>(low, high);
    case DType::kBF16:
      return LimitIn<BFloat16, float>(low, high);
    default:
      return LimitIn<float, float>(low, high);
  }
}

}  // namespace hawser::tensor
