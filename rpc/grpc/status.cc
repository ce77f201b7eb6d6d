#include "rpc/grpc/status.h"

#include <cstddef>

#include "net/grpc/status.h"
#include "proto/rpc.pb.h"
#include "rpc/errors/status_details.h"

namespace hawser::rpc {
namespace {

// More than ToGrpcStatus sends.
constexpr size_t kMaxDetailsBytes = 6000;

}  // namespace

::grpc::Status ToGrpcStatus(const absl::Status& status) {
  ::grpc::Status plain = net::ToGrpcStatus(status);
  const v1::StatusDetails details = ToStatusDetails(status);
  if (details.details().empty()) return plain;
  return ::grpc::Status(plain.error_code(), plain.error_message(),
                        details.SerializeAsString());
}

absl::Status FromGrpcStatus(const ::grpc::Status& status) {
  absl::Status plain = net::FromGrpcStatus(status);
  if (plain.ok() || status.error_details().size() > kMaxDetailsBytes) {
    return plain;
  }
  v1::StatusDetails details;
  if (details.ParseFromString(status.error_details())) {
    AddPayloads(details, plain);
  }
  return plain;
}

}  // namespace hawser::rpc
