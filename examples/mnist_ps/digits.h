#ifndef HAWSER_EXAMPLES_MNIST_PS_DIGITS_H_
#define HAWSER_EXAMPLES_MNIST_PS_DIGITS_H_

#include "absl/status/statusor.h"
#include "data/mnist.h"
#include "examples/mnist_ps/options.h"

namespace hawser::examples::mnist_ps {

// Loads the digits from options.data_dir, or generates synthetic ones if it is
// empty. Synthetic digits do not depend on the seed, so that all processes of a
// job have the same ones.
absl::StatusOr<data::DigitSplit> LoadDigits(const Options& options);

}  // namespace hawser::examples::mnist_ps

#endif  // HAWSER_EXAMPLES_MNIST_PS_DIGITS_H_
