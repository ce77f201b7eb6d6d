// The shared secret of the processes of a job.

#ifndef HAWSER_NET_AUTH_TOKEN_H_
#define HAWSER_NET_AUTH_TOKEN_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace hawser::net {

// Generates a token: 256 random bits, as 64 hexadecimal digits.
absl::StatusOr<std::string> MakeToken();

// Returns the digits of `text` in lower case, without surrounding white space.
// kInvalidArgument, which does not repeat `text`, for anything else.
absl::StatusOr<std::string> ParseToken(std::string_view text);

}  // namespace hawser::net

#endif  // HAWSER_NET_AUTH_TOKEN_H_
