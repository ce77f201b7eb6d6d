#include "rpc/errors/not_sent.h"

#include "absl/strings/cord.h"

namespace hawser::rpc {
namespace {

constexpr char kTypeUrl[] = "hawser.rpc/not_sent";

}  // namespace

absl::Status MarkNotSent(absl::Status status) {
  status.SetPayload(kTypeUrl, absl::Cord());
  return status;
}

bool IsNotSent(const absl::Status& status) {
  return status.GetPayload(kTypeUrl).has_value();
}

void ClearNotSent(absl::Status& status) { status.ErasePayload(kTypeUrl); }

}  // namespace hawser::rpc
