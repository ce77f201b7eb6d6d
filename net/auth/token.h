// The secret that the processes of one job share.

#ifndef HAWSER_NET_AUTH_TOKEN_H_
#define HAWSER_NET_AUTH_TOKEN_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace hawser::net {

// 256 random bits, as 64 hexadecimal digits.
absl::StatusOr<std::string> MakeToken();

// The digits of `text`, white space around them dropped, in lower case.
// kInvalidArgument, which does not show `text`, for anything else.
absl::StatusOr<std::string> ParseToken(std::string_view text);

}  // namespace hawser::net

#endif  // HAWSER_NET_AUTH_TOKEN_H_
