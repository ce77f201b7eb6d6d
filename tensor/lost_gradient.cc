#include "tensor/lost_gradient.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace hawser::tensor {
namespace {

absl::string_view View(std::string_view s) { return {s.data(), s.size()}; }

}  // namespace

absl::Status LostGradientError(std::string_view operation,
                               std::string_view what,
                               std::string_view recorded) {
  return absl::FailedPreconditionError(absl::StrCat(
      View(operation), ": ", View(what),
      " requires a gradient, which this operation does not record; ",
      recorded.empty() ? "" : absl::StrCat("use ", View(recorded), ", or "),
      "Detach() the tensor or put an autograd::NoGradGuard around code that "
      "needs no gradient"));
}

}  // namespace hawser::tensor
