// Verification of a client's certificate by a server of a job.

#ifndef HAWSER_NET_AUTH_JOB_VERIFIER_H_
#define HAWSER_NET_AUTH_JOB_VERIFIER_H_

#include <memory>
#include <string>

#include "grpcpp/security/tls_certificate_verifier.h"

namespace hawser::net {

// Returns a verifier that rejects certificates of other jobs in the handshake,
// so that gRPC decodes nothing that their holders send. Runs after the check of
// the certificate's signature. Thread-safe.
std::shared_ptr<grpc::experimental::CertificateVerifier> MakeJobVerifier(
    std::string job);

}  // namespace hawser::net

#endif  // HAWSER_NET_AUTH_JOB_VERIFIER_H_
