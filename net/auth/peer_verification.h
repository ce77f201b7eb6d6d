// Verification of a server by its client.

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

// Channels to one worker, which are closed at the handshake unless the
// server's certificate is that worker's and has its roles, and why their calls
// fail.
//
// Thread-safe.
class PeerVerification {
 public:
  // `worker` is the one wanted; any of the job, if empty. It must have `roles`,
  // perhaps among others.
  PeerVerification(std::shared_ptr<const Credentials> credentials,
                   std::string worker, std::vector<std::string> roles = {});
  ~PeerVerification();
  PeerVerification(const PeerVerification&) = delete;
  PeerVerification& operator=(const PeerVerification&) = delete;

  // May outlive this object.
  std::shared_ptr<grpc::Channel> CreateChannel(
      const std::string& address, grpc::ChannelArguments arguments) const;

  const Credentials& credentials() const { return *credentials_; }

  // A call on one of the channels was answered: it is past the handshake.
  void NoteAnswer() const;

  // `status`, with which a call on one of the channels ended, as
  // kUnauthenticated where one end did not accept the other's certificate: not
  // a thing that passes. Names both ends.
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
