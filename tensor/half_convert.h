// Conversion of arrays between float and the 16-bit types, with the vector
// instructions of the machine it runs on.

#ifndef HAWSER_TENSOR_HALF_CONVERT_H_
#define HAWSER_TENSOR_HALF_CONVERT_H_

#include <cstdint>

#include "tensor/half.h"

namespace hawser::tensor {

// Bit for bit what converting each element by itself gives, NaN included.
// `source` and `dest` hold `count` elements and do not overlap.
void FloatToHalf(const float* source, Half* dest, int64_t count);
void HalfToFloat(const Half* source, float* dest, int64_t count);
void FloatToBFloat16(const float* source, BFloat16* dest, int64_t count);
void BFloat16ToFloat(const BFloat16* source, float* dest, int64_t count);

}  // namespace hawser::tensor

#endif  // HAWSER_TENSOR_HALF_CONVERT_H_
