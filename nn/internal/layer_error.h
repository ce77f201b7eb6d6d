#ifndef HAWSER_NN_INTERNAL_LAYER_ERROR_H_
#define HAWSER_NN_INTERNAL_LAYER_ERROR_H_

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "absl/status/status.h"
#include "tensor/tensor.h"

namespace hawser::nn::internal {

// kInvalidArgument: "Linear(20, 16): the input must be [..., 20], not f32[3]".
absl::Status WrongInput(std::string_view layer, std::string_view role,
                        std::string_view expected, const Tensor& actual);

// Largest size for which the product with the number of LSTM gates does not
// overflow.
inline constexpr int64_t kMostSize = int64_t{1} << 60;

struct NamedSize {
  std::string_view name;
  int64_t size;
  int64_t most = kMostSize;
};

// kInvalidArgument, "Linear: in_features must be above 0, not -1", for the
// first size that is not positive or exceeds its limit.
absl::Status CheckSizes(std::string_view layer,
                        std::initializer_list<NamedSize> sizes);

}  // namespace hawser::nn::internal

#endif  // HAWSER_NN_INTERNAL_LAYER_ERROR_H_
