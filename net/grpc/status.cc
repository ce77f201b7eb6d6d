#include "net/grpc/status.h"

#include "net/wire_text.h"

namespace hawser::net {

grpc::Status ToGrpcStatus(const absl::Status& status) {
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()),
                      ToErrorText(status));
}

absl::Status FromGrpcStatus(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  const int code = status.error_code();
  const bool is_known =
      code > 0 && code <= static_cast<int>(absl::StatusCode::kUnauthenticated);
  return absl::Status(is_known ? static_cast<absl::StatusCode>(code)
                               : absl::StatusCode::kUnknown,
                      ToErrorText(status.error_message()));
}

}  // namespace hawser::net
