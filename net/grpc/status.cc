#include "net/grpc/status.h"

#include "net/wire_text.h"

namespace hawser::net {

absl::Status FromGrpcStatus(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                      status.error_message());
}

grpc::Status ToGrpcStatus(const absl::Status& status) {
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()),
                      ToErrorText(status));
}

}  // namespace hawser::net
