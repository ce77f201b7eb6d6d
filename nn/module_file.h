#ifndef HAWSER_NN_MODULE_FILE_H_
#define HAWSER_NN_MODULE_FILE_H_

#include <string_view>

#include "absl/status/status.h"
#include "nn/module.h"

namespace hawser::nn {

// Writes the state dict of `module` to a safetensors file, which other tools
// can read; it appears complete or not at all.
//
// Errors of tensor/io/safetensors.h.
absl::Status SaveModule(const Module& module, std::string_view path);

// Copies the tensors of such a file into `module`.
//
// kInvalidArgument: the file breaks the format, or its tensors do not fit, as
// for Module::LoadStateDict; nothing was changed. Other errors of
// tensor/io/safetensors.h.
absl::Status LoadModule(Module& module, std::string_view path);

}  // namespace hawser::nn

#endif  // HAWSER_NN_MODULE_FILE_H_
