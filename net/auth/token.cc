#include "net/auth/token.h"

#include <openssl/rand.h>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"

namespace hawser::net {
namespace {

constexpr size_t kDigits = 64;

}  // namespace

absl::StatusOr<std::string> MakeToken() {
  std::string bytes(kDigits / 2, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()),
                 static_cast<int>(bytes.size())) != 1) {
    return absl::InternalError("OpenSSL cannot generate random numbers");
  }
  return absl::BytesToHexString(bytes);
}

absl::StatusOr<std::string> ParseToken(std::string_view text) {
  std::string token(
      absl::StripAsciiWhitespace(absl::string_view(text.data(), text.size())));
  absl::AsciiStrToLower(&token);
  bool valid = token.size() == kDigits;
  for (char c : token) {
    valid = valid && absl::ascii_isxdigit(static_cast<unsigned char>(c));
  }
  if (valid) return token;
  return absl::InvalidArgumentError(
      "a token must have 64 hexadecimal digits; create one with: openssl rand "
      "-hex 32");
}

}  // namespace hawser::net
