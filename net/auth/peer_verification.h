// Verification of a server's certificate by its client.

#ifndef HAWSER_NET_AUTH_PEER_VERIFICATION_H_
#define HAWSER_NET_AUTH_PEER_VERIFICATION_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "grpcpp/channel.h"
#include "grpcpp/support/channel_arguments.h"
#include "net/auth/credentials.h"

namespace hawser::net {

// Creates channels to one worker, whose handshake fails unless the server's
// certificate names that worker and its roles, and explains why calls on them
// fail.
//
// Thread-safe.
class PeerVerification {
 public:
  // `worker` is the expected worker; empty accepts any worker of the job. Its
  // certificate must include `roles`.
  PeerVerification(std::shared_ptr<const Credentials> credentials,
                   std::string worker, std::vector<std::string> roles = {});
  ~PeerVerification();
  PeerVerification(const PeerVerification&) = delete;
  PeerVerification& operator=(const PeerVerification&) = delete;

  // May outlive this object.
  std::shared_ptr<grpc::Channel> CreateChannel(
      const std::string& address, grpc::ChannelArguments arguments) const;

  const Credentials& credentials() const { return *credentials_; }

  // Records that a call on one of the channels completed, so that its handshake
  // succeeded.
  void NoteAnswer() const;

  // Translates the `status` of a call on one of the channels. If one end
  // rejected the other's certificate, returns kUnauthenticated, naming both
  // ends, since a retry would fail too. Otherwise returns `status`.
  absl::Status Explain(absl::Status status) const;

 private:
  class Verifier;
  struct State;

  std::string Wanted() const;
  absl::Status RefusedByServer(std::string_view reason) const;

  const std::shared_ptr<const Credentials> credentials_;
  const std::string worker_;
  const std::vector<std::string> roles_;
  const std::shared_ptr<State> state_;
};

}  // namespace hawser::net

#endif  // HAWSER_NET_AUTH_PEER_VERIFICATION_H_
