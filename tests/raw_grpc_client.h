// Client of workers on stock gRPC, with a job's credentials.

#ifndef HAWSER_TESTS_RAW_GRPC_CLIENT_H_
#define HAWSER_TESTS_RAW_GRPC_CLIENT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "grpcpp/generic/generic_stub.h"
#include "net/auth/credentials.h"
#include "net/auth/peer_verification.h"

namespace hawser {

// A client of one worker or store, which sends serialised messages.
class RawGrpcClient {
 public:
  // Connects to the process at `address` with the certificate of `credentials`,
  // and with their token if they have one.
  RawGrpcClient(std::shared_ptr<const net::Credentials> credentials,
                const std::string& address);

  // Sends `request` to the method at `path` and returns the reply.
  absl::StatusOr<std::string> Call(const std::string& path,
                                   const std::string& request);

 private:
  const std::shared_ptr<const net::Credentials> credentials_;
  const net::PeerVerification verification_;
  grpc::GenericStub stub_;
};

}  // namespace hawser

#endif  // HAWSER_TESTS_RAW_GRPC_CLIENT_H_
