#include "launch/run/meeting_store.h"

#include <chrono>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "net/auth/credentials.h"
#include "net/auth/credentials_options.h"
#include "store/endpoint.h"
#include "store/hash/store.h"
#include "store/open_store.h"
#include "store/store_url.h"

namespace hawser::launch {
namespace {

using SteadyClock = std::chrono::steady_clock;

absl::StatusOr<std::unique_ptr<store::StoreServer>> Serve(
    const RunOptions& options,
    const std::shared_ptr<const net::Credentials>& credentials) {
  store::StoreServerOptions server;
  server.host = options.rendezvous->endpoint.host;
  server.port = options.rendezvous->endpoint.port;
  server.credentials = credentials;
  server.allow_insecure_network = options.allow_insecure_network;
  absl::StatusOr<std::unique_ptr<store::StoreServer>> started =
      store::StoreServer::Start(server);
  if (absl::IsAlreadyExists(started.status())) {
    return absl::AlreadyExistsError(absl::StrCat(
        "the port at which launchers meet is taken: ",
        started.status().message(),
        ": end that process, or choose another "
        "port with --rdzv-endpoint or --master-port on all nodes"));
  }
  return started;
}

}  // namespace

absl::StatusOr<MeetingStore> OpenMeetingStore(
    const RunOptions& options, absl::Duration timeout,
    const std::function<bool()>& interrupted) {
  MeetingStore meeting;
  if (!options.rendezvous.has_value()) {
    meeting.store = std::make_shared<store::HashStore>();
    return meeting;
  }
  ASSIGN_OR_RETURN(
      const std::shared_ptr<const net::Credentials> credentials,
      net::Credentials::Create(net::WithEnvironment({}), std::nullopt));
  store::StoreUrl url = *options.rendezvous;
  if (url.scheme == store::StoreUrl::Scheme::kTcp && options.node_rank == 0) {
    ASSIGN_OR_RETURN(meeting.server, Serve(options, credentials));
    url.endpoint.port = meeting.server->port();
  }
  const auto deadline = SteadyClock::now() + absl::ToChronoNanoseconds(timeout);
  while (true) {
    absl::StatusOr<std::unique_ptr<store::Store>> store = store::OpenStore(
        url, {.timeout = absl::Seconds(1), .credentials = credentials});
    if (store.ok()) {
      meeting.store = *std::move(store);
      return meeting;
    }
    const bool may_start_later = absl::IsUnavailable(store.status()) ||
                                 absl::IsDeadlineExceeded(store.status());
    if (!may_start_later || SteadyClock::now() >= deadline) {
      return std::move(store).status();
    }
    if (interrupted()) return absl::CancelledError("interrupted");
  }
}

}  // namespace hawser::launch
