#include "nn/module_file.h"

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "nn/module.h"
#include "tensor/io/safetensors.h"

namespace hawser::nn {

absl::Status SaveModule(const Module& module, std::string_view path) {
  return tensor::SaveSafetensors(
      path, {.tensors = module.StateDict(), .metadata = {}});
}

absl::Status LoadModule(Module& module, std::string_view path) {
  ASSIGN_OR_RETURN(const tensor::SafetensorsFile file,
                   tensor::LoadSafetensors(path));
  const absl::Status status = module.LoadStateDict(file.tensors);
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat(std::string(path), ": ", status.message()));
}

}  // namespace hawser::nn
