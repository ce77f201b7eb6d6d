#ifndef HAWSER_NN_FLATTEN_H_
#define HAWSER_NN_FLATTEN_H_

#include "absl/status/statusor.h"
#include "nn/module.h"

namespace hawser::nn {

// Joins the dims from `first` to `last`, inclusive, into one. Negative dims
// count from the end. By default, keeps the first dim and joins the others.
class Flatten final : public Layer {
 public:
  explicit Flatten(int first = 1, int last = -1) : first_(first), last_(last) {}

  // kInvalidArgument: a dim is out of range, or `last` is before `first`.
  absl::StatusOr<Tensor> Forward(const Tensor& x) const override;

 private:
  const int first_;
  const int last_;
};

}  // namespace hawser::nn

#endif  // HAWSER_NN_FLATTEN_H_
