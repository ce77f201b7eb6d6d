// Finds out why a server cannot be called.

#ifndef HAWSER_NET_AUTH_SERVER_DIAGNOSIS_H_
#define HAWSER_NET_AUTH_SERVER_DIAGNOSIS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace hawser::net {

// Connects to `address` ("host:port") after a gRPC call failed there, and says
// why a further call would fail too. `tls` is whether the caller uses TLS.
// Blocks for at most `timeout`, plus the resolution of the host name.
//
// Returns OK if waiting may help, or the cause lies elsewhere: nobody listens
// at the address yet, the server is silent, or it looks as it should. Otherwise
// names `address` and what to do:
//   kUnauthenticated     one of the two ends uses TLS and the other does not.
//   kFailedPrecondition  the server speaks another protocol than gRPC, or this
//                        machine has no route to it.
//   kResourceExhausted   this process has no free descriptor.
//
// Thread-safe.
absl::Status DiagnoseServer(const std::string& address, bool tls,
                            absl::Duration timeout);

}  // namespace hawser::net

#endif  // HAWSER_NET_AUTH_SERVER_DIAGNOSIS_H_
