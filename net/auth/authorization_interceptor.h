// Authorization check of a server with TLS, before the messages of a call are
// read.

#ifndef HAWSER_NET_AUTH_AUTHORIZATION_INTERCEPTOR_H_
#define HAWSER_NET_AUTH_AUTHORIZATION_INTERCEPTOR_H_

#include <memory>
#include <string>

#include "grpcpp/security/auth_metadata_processor.h"
#include "net/auth/authorization_policy.h"

namespace hawser::net {

// Installed in a server's credentials; runs for each call in gRPC's thread,
// before any of its messages is read. Fails the following calls with
// PERMISSION_DENIED:
//
//   Calls that `policy`, unless null, denies to the names of the certificate:
//   its URIs, including roles, and its host names.
//
//   Calls of debug services (net/server/debug_services.h) without a certificate
//   of `job` with the role admin.
std::shared_ptr<grpc::AuthMetadataProcessor> MakeAuthorizationInterceptor(
    std::string job, std::shared_ptr<AuthorizationPolicy> policy);

}  // namespace hawser::net

#endif  // HAWSER_NET_AUTH_AUTHORIZATION_INTERCEPTOR_H_
