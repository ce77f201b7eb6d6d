#ifndef HAWSER_BAZEL_CUDA_TEST_SCALE_H_
#define HAWSER_BAZEL_CUDA_TEST_SCALE_H_

#include <cstddef>

namespace hawser::build_test {

// Multiplies `count` floats in device memory by `factor` on the default stream.
void Scale(float* values, std::size_t count, float factor);

}  // namespace hawser::build_test

#endif  // HAWSER_BAZEL_CUDA_TEST_SCALE_H_
