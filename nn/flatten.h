#ifndef HAWSER_NN_FLATTEN_H_
#define HAWSER_NN_FLATTEN_H_

#include "absl/status/statusor.h"
#include "nn/module.h"

namespace hawser::nn {

// Makes one dim of dims `first` to `last`, both included and counted from the
// end if negative: by default [n, ...] to [n, the rest].
class Flatten final : public Layer {
 public:
  explicit Flatten(int first = 1, int last = -1) : first_(first), last_(last) {}

  // kInvalidArgument: the input has no such dims, or `last` is before `first`.
  absl::StatusOr<Tensor> Forward(const Tensor& x) const override;

 private:
  const int first_;
  const int last_;
};

}  // namespace hawser::nn

#endif  // HAWSER_NN_FLATTEN_H_
