// The help of the example.

#ifndef HAWSER_EXAMPLES_MNIST_PS_USAGE_H_
#define HAWSER_EXAMPLES_MNIST_PS_USAGE_H_

#include <string>

namespace hawser::examples::mnist_ps {

// Describes the program, each flag of options.cc with its default value, the
// result and the exit codes, in lines of at most `columns` columns; 0 for 80.
std::string Usage(int columns);

}  // namespace hawser::examples::mnist_ps

#endif  // HAWSER_EXAMPLES_MNIST_PS_USAGE_H_
