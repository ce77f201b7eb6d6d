#include "nn/sequential.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "nn/module.h"
#include "tensor/tensor.h"

namespace hawser::nn {

void Sequential::Append(std::unique_ptr<Layer> layer) {
  Append(absl::StrCat(layers_.size()), std::move(layer));
}

void Sequential::Append(std::string name, std::unique_ptr<Layer> layer) {
  Layer* const added = RegisterModule(name, std::move(layer));
  layers_.emplace_back(std::move(name), added);
}

absl::StatusOr<Tensor> Sequential::Forward(const Tensor& x) const {
  Tensor value = x;
  for (const auto& [name, layer] : layers_) {
    absl::StatusOr<Tensor> next = layer->Forward(value);
    if (!next.ok()) {
      return absl::Status(
          next.status().code(),
          absl::StrCat("layer ", name, ": ", next.status().message()));
    }
    value = *std::move(next);
  }
  return value;
}

}  // namespace hawser::nn
