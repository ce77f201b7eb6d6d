#include "async/future.h"

#include "absl/strings/str_cat.h"

namespace hawser::async::internal {

absl::Status WaitTimeoutError(absl::Duration waited, std::string_view what) {
  return absl::DeadlineExceededError(absl::StrCat(
      "timed out after ", absl::FormatDuration(waited), " waiting for ",
      absl::string_view(what.data(), what.size())));
}

}  // namespace hawser::async::internal
