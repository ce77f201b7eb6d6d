#include "rpc/errors/status_prefix.h"

#include <string>

#include "absl/strings/cord.h"

namespace hawser::rpc {

absl::Status WithPrefix(std::string_view prefix, const absl::Status& status) {
  if (status.ok()) return status;
  std::string message(prefix);
  message += ": ";
  message.append(status.message().data(), status.message().size());
  absl::Status prefixed(status.code(), message);
  status.ForEachPayload([&](auto url, const absl::Cord& payload) {
    prefixed.SetPayload(url, payload);
  });
  return prefixed;
}

}  // namespace hawser::rpc
