#include "rpc/grpc/connection_factory.h"

#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/strings/match.h"
#include "grpcpp/support/channel_arguments.h"
#include "net/auth/peer_verification.h"
#include "net/grpc/client_settings.h"
#include "rpc/grpc/call_stream/client_call_stream.h"
#include "rpc/grpc/connection.h"
#include "rpc/grpc/fragments/message_fragments.h"
#include "rpc/grpc/limits.h"
#include "rpc/grpc/tuning/loopback_socket.h"
#include "rpc/link/link_connection.h"

namespace hawser::rpc {
namespace {

// A stream costs memory at both ends and about as much as some calls.
constexpr int kCallsBeforeStream = 8;
// Longer requests are copied less often as calls of their own.
constexpr size_t kMaxCombinedRequest = size_t{16} << 10;

absl::string_view HostOf(absl::string_view address) {
  if (absl::StartsWith(address, "[")) {
    return address.substr(1, address.find(']') - 1);
  }
  return address.substr(0, address.rfind(':'));
}

::grpc::ChannelArguments ChannelArgumentsFor(int max_message_bytes) {
  ::grpc::ChannelArguments arguments = net::ClientSettings();
  arguments.SetMaxReceiveMessageSize(max_message_bytes);
  arguments.SetMaxSendMessageSize(max_message_bytes);
  // For requests in fragments: the next fragment is created when at most this
  // many bytes are left to be sent.
  arguments.SetInt(GRPC_ARG_HTTP2_WRITE_BUFFER_SIZE, 2 * kFragmentBytes);
  return arguments;
}

}  // namespace

bool IsLoopback(std::string_view text) {
  const absl::string_view address(text.data(), text.size());
  if (absl::StartsWith(address, "unix:")) return true;
  const absl::string_view host = HostOf(address);
  if (host == "localhost" || host == "::1") return true;
  // 127.0.0.0/8, written in full; anything else may be a host name.
  int dots = 0;
  for (char c : host) {
    if (c == '.') {
      ++dots;
    } else if (c < '0' || c > '9') {
      return false;
    }
  }
  return dots == 3 && absl::StartsWith(host, "127.");
}

ConnectionFactory::ConnectionFactory(Options options)
    : options_(std::move(options)),
      reply_budget_(std::make_shared<AssemblyBudget>(
          options_.memory_quota_bytes, options_.memory_quota_bytes)) {}

std::shared_ptr<Connection> ConnectionFactory::Make(
    const ConnectionTarget& target) const {
  auto verification = std::make_shared<net::PeerVerification>(
      options_.credentials, target.worker, target.roles);
  auto make_channel = [address = target.address, verification,
                       limit = ToIntLimit(options_.max_message_bytes)] {
    ::grpc::ChannelArguments arguments = ChannelArgumentsFor(limit);
    if (IsLoopback(address)) TuneForLoopback(arguments);
    return verification->CreateChannel(address, arguments);
  };
  auto connection = std::make_shared<GrpcConnection>(
      std::move(make_channel), options_.poller, options_.gate, verification,
      options_.max_message_bytes, options_.spin);
  if (options_.max_message_bytes < kMinStreamLimit) return connection;
  auto opener = std::make_unique<CallStreamOpener>(
      connection, std::move(verification),
      CallStream::Options{.poller = options_.poller,
                          .gate = options_.gate,
                          .max_message_bytes = options_.max_message_bytes,
                          .budget = reply_budget_,
                          .peer = target.address});
  return std::make_shared<LinkConnection>(
      std::move(connection), std::move(opener), options_.gate,
      LinkConnection::Options{
          .max_request_bytes = kMaxCombinedRequest,
          .calls_before_link = kCallsBeforeStream,
          .spin = options_.spin,
          .post = [poller =
                       options_.poller](absl::AnyInvocable<void() &&> closure) {
            poller->Post(std::move(closure));
          }});
}

}  // namespace hawser::rpc
