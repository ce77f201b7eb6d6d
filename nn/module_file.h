#ifndef HAWSER_NN_MODULE_FILE_H_
#define HAWSER_NN_MODULE_FILE_H_

#include <string_view>

#include "absl/status/status.h"
#include "nn/module.h"

namespace hawser::nn {

// Writes the state dict of `module` to a safetensors file, atomically. Other
// tools can read it.
//
// Errors are those of tensor/io/safetensors.h.
absl::Status SaveModule(const Module& module, std::string_view path);

// Copies the tensors of such a file to `module`.
//
// kInvalidArgument: the file is malformed, or Module::LoadStateDict rejects its
// tensors; nothing was changed. Other errors are those of
// tensor/io/safetensors.h.
absl::Status LoadModule(Module& module, std::string_view path);

}  // namespace hawser::nn

#endif  // HAWSER_NN_MODULE_FILE_H_
