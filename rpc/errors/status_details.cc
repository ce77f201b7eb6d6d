#include "rpc/errors/status_details.h"

#include <cstddef>
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"
#include "net/wire_text.h"

namespace hawser::rpc {
namespace {

// gRPC's default limit on trailers is 8 KiB. Base64 lengthens the details by a
// third, and they also contain the message.
constexpr size_t kMaxPayloadBytes = 1500;

}  // namespace

v1::StatusDetails ToStatusDetails(const absl::Status& status) {
  v1::StatusDetails details;
  details.set_code(static_cast<int>(status.code()));
  details.set_message(net::ToErrorText(status));
  size_t bytes = 0;
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    bytes += url.size() + payload.size();
    const bool is_utf8 = net::IsUtf8({url.data(), url.size()});
    if (bytes > kMaxPayloadBytes || !is_utf8) return;
    v1::StatusDetail* detail = details.add_details();
    detail->set_type_url(std::string(url));
    detail->set_value(std::string(payload));
  });
  return details;
}

void AddPayloads(const v1::StatusDetails& details, absl::Status& status) {
  for (const v1::StatusDetail& detail : details.details()) {
    status.SetPayload(detail.type_url(), absl::Cord(detail.value()));
  }
}

absl::Status FromStatusDetails(const v1::StatusDetails& details) {
  int code = details.code();
  if (code < 0 || code > static_cast<int>(absl::StatusCode::kUnauthenticated)) {
    code = static_cast<int>(absl::StatusCode::kUnknown);
  }
  absl::Status status(static_cast<absl::StatusCode>(code),
                      net::ToErrorText(details.message()));
  AddPayloads(details, status);
  return status;
}

}  // namespace hawser::rpc
