#include "rpc/errors/unsent.h"

#include "absl/strings/cord.h"

namespace hawser::rpc {
namespace {

constexpr char kTypeUrl[] = "hawser.rpc/unsent";

}  // namespace

absl::Status MarkUnsent(absl::Status status) {
  status.SetPayload(kTypeUrl, absl::Cord());
  return status;
}

bool IsUnsent(const absl::Status& status) {
  return status.GetPayload(kTypeUrl).has_value();
}

void ClearUnsent(absl::Status& status) { status.ErasePayload(kTypeUrl); }

}  // namespace hawser::rpc
