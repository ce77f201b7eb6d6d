#include "rpc/identity/timeout.h"

#include "absl/strings/str_cat.h"

namespace hawser::rpc {

absl::Status CheckTimeout(absl::Duration timeout) {
  if (timeout >= absl::ZeroDuration()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the timeout ", absl::FormatDuration(timeout),
                   " is negative; use rpc::kNoTimeout to wait forever"));
}

}  // namespace hawser::rpc
