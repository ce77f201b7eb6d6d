#include "nn/internal/layer_error.h"

#include <initializer_list>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tensor/tensor.h"

namespace hawser::nn::internal {
namespace {

absl::string_view View(std::string_view text) {
  return absl::string_view(text.data(), text.size());
}

}  // namespace

absl::Status WrongInput(std::string_view layer, std::string_view role,
                        std::string_view expected, const Tensor& actual) {
  return absl::InvalidArgumentError(absl::StrCat(
      View(layer), ": the ", View(role), " must be ", View(expected), ", not ",
      actual.defined() ? actual.ToString() : "undefined"));
}

absl::Status CheckSizes(std::string_view layer,
                        std::initializer_list<NamedSize> sizes) {
  for (const NamedSize& size : sizes) {
    if (size.size <= 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(View(layer), ": ", View(size.name),
                       " must be above 0, not ", size.size));
    }
    if (size.size > size.most) {
      return absl::InvalidArgumentError(
          absl::StrCat(View(layer), ": ", View(size.name), " must be at most ",
                       size.most, ", not ", size.size));
    }
  }
  return absl::OkStatus();
}

}  // namespace hawser::nn::internal
