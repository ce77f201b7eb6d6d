#include "nn/dropout.h"

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "autograd/ops/dropout.h"
#include "nn/internal/layer_error.h"
#include "tensor/ops/random.h"
#include "tensor/tensor.h"

namespace hawser::nn {

absl::StatusOr<std::unique_ptr<Dropout>> Dropout::Create(
    double probability, std::shared_ptr<tensor::Generator> generator) {
  if (!(probability >= 0 && probability <= 1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Dropout: the probability must be in [0, 1], not ", probability));
  }
  if (generator == nullptr) {
    return absl::InvalidArgumentError(
        "Dropout: the generator must not be null");
  }
  return std::unique_ptr<Dropout>(
      new Dropout(probability, std::move(generator)));
}

absl::StatusOr<Tensor> Dropout::Forward(const Tensor& x) const {
  if (!x.defined()) {
    return internal::WrongInput("Dropout", "input", "a tensor", x);
  }
  if (!is_training() || probability_ == 0) return x;
  return autograd::Dropout(x, probability_, *generator_);
}

}  // namespace hawser::nn
