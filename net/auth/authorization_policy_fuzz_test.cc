// Fuzz test: parses arbitrary bytes as an authorization policy.

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "async/check.h"
#include "net/auth/authorization_policy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto rules = hawser::net::AuthorizationRules::Parse(
      std::string(reinterpret_cast<const char*>(data), size));
  if (!rules.ok()) {
    HAWSER_CHECK(absl::IsInvalidArgument(rules.status()));
    return 0;
  }
  for (const char* path :
       {"", "/a.A/Push", "/b.B/PullInFragments", "InFragments"}) {
    const absl::Status answer =
        rules->Check({"hawser://j/w1", "hawser-role:intern"}, path);
    HAWSER_CHECK(answer.ok() || absl::IsPermissionDenied(answer));
  }
  return 0;
}
