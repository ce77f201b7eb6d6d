// Fuzz test: arbitrary bytes as a token, and as the names in a certificate.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/check.h"
#include "bazel/fuzz/fuzz_input.h"
#include "net/auth/identity.h"
#include "net/auth/role.h"
#include "net/auth/token.h"

namespace hawser::net {
namespace {

void CheckNames(fuzz::FuzzInput& input) {
  std::vector<std::string> uris;
  while (!input.empty()) uris.emplace_back(input.Bytes());
  const absl::StatusOr<Identity> identity = FindIdentity(uris);
  if (!identity.ok()) return;
  HAWSER_CHECK(Validate(*identity).ok());
  HAWSER_CHECK(CheckClaim(*identity, *identity).ok());
  CheckClaimedRoles("it", identity->roles, uris).IgnoreError();
  for (const std::string& role : identity->roles) {
    const auto again = ParseRoleUri(RoleUri(role));
    HAWSER_CHECK(again.ok() && again->value() == role);
  }
}

void CheckToken(std::string_view text) {
  const absl::StatusOr<std::string> token = ParseToken(text);
  if (!token.ok()) return;
  HAWSER_CHECK(token->size() == 64);
  HAWSER_CHECK(*ParseToken(*token) == *token);
}

}  // namespace
}  // namespace hawser::net

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hawser::fuzz::FuzzInput input(data, size);
  if (input.Bool()) {
    hawser::net::CheckNames(input);
  } else {
    hawser::net::CheckToken(input.Take(size));
  }
  return 0;
}
