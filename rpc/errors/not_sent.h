// Mark on errors of requests that were not sent.

#ifndef HAWSER_RPC_ERRORS_NOT_SENT_H_
#define HAWSER_RPC_ERRORS_NOT_SENT_H_

#include "absl/status/status.h"

namespace hawser::rpc {

// Marks an error, by a status payload, as one of a request of which no byte was
// passed to a connection, so that the peer cannot have run it.
absl::Status MarkNotSent(absl::Status status);
bool IsNotSent(const absl::Status& status);
// Removes the mark.
void ClearNotSent(absl::Status& status);

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_ERRORS_NOT_SENT_H_
