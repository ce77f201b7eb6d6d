// Dense conversions between f32 and the 16-bit dtypes, vectorised for the CPU
// the program runs on.
//
// To a 16-bit type: nearest even, NaN stays NaN, too large becomes infinite.
#ifndef HAWSER_TENSOR_CPU_CONVERT_H_
#define HAWSER_TENSOR_CPU_CONVERT_H_

#include <cstdint>

#include "tensor/half.h"

namespace hawser::tensor::cpu {

void ToFloat(const BFloat16* in, float* out, int64_t count);
void ToFloat(const Half* in, float* out, int64_t count);
void FromFloat(const float* in, BFloat16* out, int64_t count);
void FromFloat(const float* in, Half* out, int64_t count);

}  // namespace hawser::tensor::cpu

#endif  // HAWSER_TENSOR_CPU_CONVERT_H_
