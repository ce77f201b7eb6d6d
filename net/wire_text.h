// Text as protobuf's string fields and gRPC's trailers take it.

#ifndef HAWSER_NET_WIRE_TEXT_H_
#define HAWSER_NET_WIRE_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace hawser::net {

// The longest text of an error that is sent. gRPC writes up to three bytes for
// each one, and the text is in an error's details as well: both fit in
// kMaxMetadataBytes.
inline constexpr size_t kMaxErrorTextBytes = 1200;

bool IsUtf8(std::string_view text);

// kInvalidArgument unless `text` is UTF-8, naming `what` it is: "address".
absl::Status CheckUtf8(std::string_view what, std::string_view text);

// `text` of an error, fit to be sent: each byte that is not UTF-8 is replaced
// by U+FFFD; above kMaxErrorTextBytes it is cut between two characters and ends
// in "...". Every message of a status that leaves the process goes through
// this.
std::string ToErrorText(std::string_view text);
// The same of the message of `status`.
std::string ToErrorText(const absl::Status& status);

}  // namespace hawser::net

#endif  // HAWSER_NET_WIRE_TEXT_H_
