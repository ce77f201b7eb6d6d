#include "launch/group/join_group.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "launch/master_endpoint.h"
#include "launch/process_place.h"
#include "net/auth/credentials.h"
#include "net/auth/credentials_options.h"
#include "store/endpoint.h"
#include "store/grpc/server.h"
#include "store/hash/store.h"
#include "store/open_store.h"
#include "store/store_url.h"

namespace hawser::launch {

using collectives::MakeGroupOptions;
using collectives::MakeProcessGroup;
using collectives::ProcessGroup;

absl::StatusOr<std::unique_ptr<ProcessGroup>> JoinGroup(
    MakeGroupOptions options) {
  ASSIGN_OR_RETURN(const ProcessPlace place, PlaceFromEnvironment());
  if (place.rank.has_value() && !place.world_size.has_value()) {
    return absl::InvalidArgumentError(
        "the launcher has set the rank of this process, but not the number of "
        "processes: set WORLD_SIZE");
  }
  options.rank = place.rank.value_or(0);
  options.size = place.rank.has_value() ? *place.world_size : 1;
  if (options.size == 1) {
    store::HashStore store;
    return MakeProcessGroup(store, options);
  }
  ASSIGN_OR_RETURN(const store::Endpoint endpoint,
                   MasterEndpoint(place.master_address, place.master_port));
  if (endpoint.port == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "MASTER_PORT is 0, and the other ranks cannot know which port rank 0 "
        "of ",
        options.size, " would choose: set it to one between 1 and 65535"));
  }
  ASSIGN_OR_RETURN(
      const std::shared_ptr<const net::Credentials> credentials,
      net::Credentials::Create(net::WithEnvironment({}), std::nullopt));
  std::unique_ptr<store::StoreServer> server;
  if (options.rank == 0) {
    ASSIGN_OR_RETURN(server,
                     store::StoreServer::Start({.host = endpoint.host,
                                                .port = endpoint.port,
                                                .credentials = credentials}));
  }
  store::StoreUrl url;
  url.scheme = store::StoreUrl::Scheme::kTcp;
  url.endpoint = endpoint;
  ASSIGN_OR_RETURN(const std::unique_ptr<store::Store> store,
                   store::OpenStore(url, {.timeout = options.start_timeout,
                                          .credentials = credentials}));
  ASSIGN_OR_RETURN(std::unique_ptr<ProcessGroup> group,
                   MakeProcessGroup(*store, options));
  // The others may still read the store of rank 0.
  RETURN_IF_ERROR(group->Barrier());
  return group;
}

}  // namespace hawser::launch
