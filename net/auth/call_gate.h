// Gate of a server with TLS: refuses calls before their messages are read.

#ifndef HAWSER_NET_AUTH_CALL_GATE_H_
#define HAWSER_NET_AUTH_CALL_GATE_H_

#include <memory>
#include <string>

#include "grpcpp/security/auth_metadata_processor.h"
#include "net/auth/authorization_policy.h"

namespace hawser::net {

// Given to a server's credentials, sees each call before any of its messages is
// read, in gRPC's thread. Others than these pass; these get PERMISSION_DENIED:
//
//   What `policy`, unless null, refuses to the names of the certificate: its
//   URIs, roles included, and its host names.
//
//   Calls of debug services (net/server/debug_services.h), but of certificates
//   of `job` with the role admin.
std::shared_ptr<grpc::AuthMetadataProcessor> MakeCallGate(
    std::string job, std::shared_ptr<AuthorizationPolicy> policy);

}  // namespace hawser::net

#endif  // HAWSER_NET_AUTH_CALL_GATE_H_
