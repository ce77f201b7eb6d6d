// The file to which a trained model is written.

#ifndef HAWSER_EXAMPLES_MNIST_PS_SAVED_MODEL_H_
#define HAWSER_EXAMPLES_MNIST_PS_SAVED_MODEL_H_

#include <span>
#include <string>

#include "absl/status/status.h"
#include "tensor/tensor.h"

namespace hawser::examples::mnist_ps {

// Checks before the training that a file can be created at `path`, by creating
// and removing a temporary file beside it. OK if `path` is empty. The error
// names the path.
absl::Status CheckSavePath(const std::string& path);

// Writes the model to `path`, or, if that fails, to a new directory in the
// system's directory of temporary files. The error, if the first file cannot be
// written, names both. Nothing happens if `path` is empty.
absl::Status SaveModel(const std::string& path,
                       std::span<const Tensor> parameters);

}  // namespace hawser::examples::mnist_ps

#endif  // HAWSER_EXAMPLES_MNIST_PS_SAVED_MODEL_H_
