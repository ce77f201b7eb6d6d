#ifndef HAWSER_NN_DROPOUT_H_
#define HAWSER_NN_DROPOUT_H_

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "nn/module.h"
#include "tensor/ops/random.h"

namespace hawser::nn {

// Dropout (Srivastava et al., 2014). While training, sets each element to 0
// with `probability` and divides the others by 1 - probability. In evaluation
// mode, returns its input.
class Dropout final : public Layer {
 public:
  // kInvalidArgument: `probability` is not in [0, 1], or `generator` is null.
  static absl::StatusOr<std::unique_ptr<Dropout>> Create(
      double probability, std::shared_ptr<tensor::Generator> generator);

  absl::StatusOr<Tensor> Forward(const Tensor& x) const override;

 private:
  Dropout(double probability, std::shared_ptr<tensor::Generator> generator)
      : probability_(probability), generator_(std::move(generator)) {}

  const double probability_;
  const std::shared_ptr<tensor::Generator> generator_;
};

}  // namespace hawser::nn

#endif  // HAWSER_NN_DROPOUT_H_
