#include "rpc/errors/error_detail.h"

#include "absl/strings/cord.h"
#include "net/wire_text.h"
#include "proto/rpc.pb.h"

namespace hawser::rpc {
namespace {

constexpr char kTypeUrl[] = "type.googleapis.com/hawser.v1.ErrorDetail";

}  // namespace

void SetErrorDetail(const ErrorDetail& detail, absl::Status& status) {
  v1::ErrorDetail message;
  message.set_worker(net::ToErrorText(detail.worker));
  message.set_incarnation(ToNumber(detail.incarnation));
  message.set_maybe_applied(detail.maybe_applied);
  status.SetPayload(kTypeUrl, absl::Cord(message.SerializeAsString()));
}

absl::Status WithErrorDetail(absl::Status status, const WorkerInfo& worker,
                             bool maybe_applied) {
  if (status.ok() || GetErrorDetail(status).has_value()) return status;
  SetErrorDetail({.worker = worker.name,
                  .incarnation = worker.incarnation,
                  .maybe_applied = maybe_applied},
                 status);
  return status;
}

std::optional<ErrorDetail> GetErrorDetail(const absl::Status& status) {
  const auto payload = status.GetPayload(kTypeUrl);
  if (!payload.has_value()) return std::nullopt;
  v1::ErrorDetail message;
  if (!message.ParseFromString(std::string(*payload))) return std::nullopt;
  return ErrorDetail{.worker = message.worker(),
                     .incarnation = Incarnation{message.incarnation()},
                     .maybe_applied = message.maybe_applied()};
}

}  // namespace hawser::rpc
