#include "rpc/errors/error_detail.h"

#include "absl/status/status_payload_printer.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "net/wire_text.h"
#include "proto/rpc.pb.h"

namespace hawser::rpc {
namespace {

constexpr char kTypeUrl[] = "type.googleapis.com/hawser.v1.ErrorDetail";

std::optional<ErrorDetail> Parse(const absl::Cord& payload) {
  v1::ErrorDetail message;
  if (!message.ParseFromString(std::string(payload))) return std::nullopt;
  return ErrorDetail{.worker = message.worker(),
                     .incarnation = Incarnation{message.incarnation()},
                     .maybe_applied = message.maybe_applied()};
}

absl::optional<std::string> Print(absl::string_view type_url,
                                  const absl::Cord& payload) {
  if (type_url != kTypeUrl) return absl::nullopt;
  const std::optional<ErrorDetail> detail = Parse(payload);
  if (!detail.has_value()) return absl::nullopt;
  return ToString(*detail);
}

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
  return payload.has_value() ? Parse(*payload) : std::nullopt;
}

std::string ToString(const ErrorDetail& detail) {
  const std::string worker = detail.worker.empty()
                                 ? "an unknown worker"
                                 : absl::StrCat("worker '", detail.worker, "'");
  const std::string incarnation =
      detail.incarnation == Incarnation{}
          ? ""
          : absl::StrCat(" (incarnation ", ToString(detail.incarnation), ")");
  return absl::StrCat(worker, incarnation,
                      detail.maybe_applied
                          ? ", the call may have run"
                          : ", the call did not run or its function failed");
}

void PrintErrorDetailsInWords() {
  [[maybe_unused]] static const bool once = [] {
    if (absl::status_internal::GetStatusPayloadPrinter() == nullptr) {
      absl::status_internal::SetStatusPayloadPrinter(Print);
    }
    return true;
  }();
}

}  // namespace hawser::rpc
