#include "rpc/grpc/status.h"

#include <string>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "proto/rpc.pb.h"

namespace hawser::rpc {
namespace {

// gRPC's default limit on trailers is 8 KiB; base64 makes details longer by a
// third, and the message is in them as well.
constexpr size_t kMaxMessageBytes = 1500;
constexpr size_t kMaxPayloadBytes = 1500;

std::string Cut(absl::string_view text) {
  if (text.size() <= kMaxMessageBytes) return std::string(text);
  return absl::StrCat(text.substr(0, kMaxMessageBytes), "...");
}

}  // namespace

::grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return ::grpc::Status::OK;
  v1::StatusDetails details;
  size_t bytes = 0;
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    bytes += url.size() + payload.size();
    if (bytes > kMaxPayloadBytes) return;
    v1::StatusDetail* detail = details.add_details();
    detail->set_type_url(std::string(url));
    detail->set_value(std::string(payload));
  });
  const auto code = static_cast<::grpc::StatusCode>(status.code());
  const std::string message = Cut(status.message());
  if (details.details().empty()) return ::grpc::Status(code, message);
  details.set_code(code);
  details.set_message(message);
  return ::grpc::Status(code, message, details.SerializeAsString());
}

absl::Status FromGrpcStatus(const ::grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  int code = status.error_code();
  if (code < 0 || code > static_cast<int>(absl::StatusCode::kUnauthenticated)) {
    code = static_cast<int>(absl::StatusCode::kUnknown);
  }
  absl::Status result(static_cast<absl::StatusCode>(code),
                      Cut(status.error_message()));
  v1::StatusDetails details;
  if (status.error_details().size() > 4 * kMaxPayloadBytes ||
      !details.ParseFromString(status.error_details())) {
    return result;
  }
  for (const v1::StatusDetail& detail : details.details()) {
    result.SetPayload(detail.type_url(), absl::Cord(detail.value()));
  }
  return result;
}

}  // namespace hawser::rpc
