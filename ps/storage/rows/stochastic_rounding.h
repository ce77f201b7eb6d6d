// Rounding of f32 to 16-bit types that is right on average.

#ifndef HAWSER_PS_STORAGE_ROWS_STOCHASTIC_ROUNDING_H_
#define HAWSER_PS_STORAGE_ROWS_STOCHASTIC_ROUNDING_H_

#include <cstddef>
#include <cstdint>

#include "tensor/half.h"

namespace hawser::ps {

// Rounds each of `count` numbers to one of its two neighbours, to the nearer
// one with the higher probability, so that the expected result is the number.
// Numbers that `dest` can represent stay the same, as do infinity and NaN. The
// choice is a hash of `salt`, position and number: repeatable.
void RoundStochastically(const float* source, size_t count, uint64_t salt,
                         tensor::BFloat16* dest);
void RoundStochastically(const float* source, size_t count, uint64_t salt,
                         tensor::Half* dest);

}  // namespace hawser::ps

#endif  // HAWSER_PS_STORAGE_ROWS_STOCHASTIC_ROUNDING_H_
