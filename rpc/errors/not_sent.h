// Errors of requests that never left.

#ifndef HAWSER_RPC_ERRORS_NOT_SENT_H_
#define HAWSER_RPC_ERRORS_NOT_SENT_H_

#include "absl/status/status.h"

namespace hawser::rpc {

// Says of an error, by a payload, that no byte of the request was given to a
// connection: the peer cannot have run it.
absl::Status MarkNotSent(absl::Status status);
bool IsNotSent(const absl::Status& status);
// Where the payload has no business any more.
void ClearNotSent(absl::Status& status);

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_ERRORS_NOT_SENT_H_
