#ifndef HAWSER_DATA_SYNTHETIC_DIGITS_H_
#define HAWSER_DATA_SYNTHETIC_DIGITS_H_

#include <cstdint>

#include "data/labeled_images.h"

namespace hawser::data {

// Generates `count` digits of 28 x 28 pixels. The strokes of each digit are
// randomly shifted, rotated, slanted, scaled, bent and drawn with a random pen
// width, with a little noise. Labels are evenly distributed, in an order
// shuffled by the seed.
//
// The same `count` and `seed` give the same bytes on every machine: integers
// come from a generator that the C++ standard specifies, and the drawing uses
// only additions, multiplications, divisions and square roots.
LabeledImages DrawDigits(int64_t count, uint64_t seed);

}  // namespace hawser::data

#endif  // HAWSER_DATA_SYNTHETIC_DIGITS_H_
