// Calls workers as a program may that knows gRPC and a job's certificates only.

#ifndef HAWSER_TESTS_RAW_GRPC_CLIENT_H_
#define HAWSER_TESTS_RAW_GRPC_CLIENT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "grpcpp/generic/generic_stub.h"
#include "net/auth/credentials.h"
#include "net/auth/peer_verification.h"

namespace hawser {

// A client, on stock gRPC, of worker 0 or of its store.
class RawGrpcClient {
 public:
  // Of the process at `address`, with the certificate, and the token if there
  // is one, of `credentials`.
  RawGrpcClient(std::shared_ptr<const net::Credentials> credentials,
                const std::string& address);

  // The reply to `request` at `path`.
  absl::StatusOr<std::string> Call(const std::string& path,
                                   const std::string& request);

 private:
  const std::shared_ptr<const net::Credentials> credentials_;
  const net::PeerVerification verification_;
  grpc::GenericStub stub_;
};

}  // namespace hawser

#endif  // HAWSER_TESTS_RAW_GRPC_CLIENT_H_
