// Normal random numbers that are the same on every machine.

#ifndef HAWSER_DATA_TABULAR_NORMAL_NUMBER_H_
#define HAWSER_DATA_TABULAR_NORMAL_NUMBER_H_

#include <cmath>
#include <numbers>

#include "async/random_source.h"

namespace hawser::data {

// Draws a number of mean 0 and deviation 1 (Box and Muller, 1958). Unlike
// std::normal_distribution, it is not left to the standard library.
inline float NormalNumber(async::RandomSource& random) {
  const double radius = std::sqrt(-2 * std::log(1 - random.Uniform()));
  return static_cast<float>(radius *
                            std::cos(2 * std::numbers::pi * random.Uniform()));
}

}  // namespace hawser::data

#endif  // HAWSER_DATA_TABULAR_NORMAL_NUMBER_H_
