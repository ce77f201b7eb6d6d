#include "rpc/grpc/status.h"

#include <cstddef>
#include <string>

#include "proto/rpc.pb.h"
#include "rpc/errors/status_details.h"

namespace hawser::rpc {
namespace {

// More than ToGrpcStatus sends.
constexpr size_t kMaxDetailsBytes = 6000;

}  // namespace

::grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return ::grpc::Status::OK;
  const v1::StatusDetails details = ToStatusDetails(status);
  const auto code = static_cast<::grpc::StatusCode>(status.code());
  if (details.details().empty()) return ::grpc::Status(code, details.message());
  return ::grpc::Status(code, details.message(), details.SerializeAsString());
}

absl::Status FromGrpcStatus(const ::grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  v1::StatusDetails details;
  if (status.error_details().size() > kMaxDetailsBytes ||
      !details.ParseFromString(status.error_details())) {
    details.Clear();
  }
  details.set_code(status.error_code());
  details.set_message(status.error_message());
  return FromStatusDetails(details);
}

}  // namespace hawser::rpc
