#ifndef HAWSER_DATA_SYNTHETIC_DIGITS_H_
#define HAWSER_DATA_SYNTHETIC_DIGITS_H_

#include <cstdint>

#include "data/labeled_images.h"

namespace hawser::data {

// Draws `count` digits of 28 x 28 pixels without any file: the strokes of a
// digit, each time shifted, turned, slanted, scaled, bent and drawn with a pen
// of another width, with a little noise. Labels go round evenly, in an order
// shuffled by the seed.
//
// The same `count` and `seed` give the same bytes on every machine: integers
// come from a generator that the C++ standard fixes and the drawing uses only
// additions, multiplications, divisions and square roots.
LabeledImages DrawDigits(int64_t count, uint64_t seed);

}  // namespace hawser::data

#endif  // HAWSER_DATA_SYNTHETIC_DIGITS_H_
