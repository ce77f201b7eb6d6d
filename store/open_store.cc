#include "store/open_store.h"

#include <cstdlib>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "store/endpoint.h"
#include "store/etcd/store.h"
#include "store/file/store.h"
#include "store/grpc/store.h"
#include "store/redis/store.h"

namespace hawser::store {
namespace {

absl::StatusOr<std::string> FromEnvironment(const char* variable) {
  const char* const text = std::getenv(variable);
  if (text != nullptr && *text != '\0') return std::string(text);
  return absl::InvalidArgumentError(absl::StrCat(
      "the store's URL is env://, but the environment has no ", variable));
}

absl::StatusOr<Endpoint> EndpointOfEnvironment() {
  ASSIGN_OR_RETURN(const std::string host, FromEnvironment("MASTER_ADDR"));
  ASSIGN_OR_RETURN(const std::string port, FromEnvironment("MASTER_PORT"));
  // MASTER_ADDR has no brackets around an IPv6 address.
  return ParseEndpoint(host.find(':') == std::string::npos
                           ? absl::StrCat(host, ":", port)
                           : absl::StrCat("[", host, "]:", port));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Store>> OpenStore(const StoreUrl& url,
                                                 OpenStoreOptions options) {
  const absl::Duration timeout = options.timeout;
  switch (url.scheme) {
    case StoreUrl::Scheme::kEnv: {
      ASSIGN_OR_RETURN(const Endpoint endpoint, EndpointOfEnvironment());
      return GrpcStore::Connect(
          {.address = ToString(endpoint),
           .timeout = timeout,
           .credentials = std::move(options.credentials)});
    }
    case StoreUrl::Scheme::kTcp:
      return GrpcStore::Connect(
          {.address = ToString(url.endpoint),
           .timeout = timeout,
           .credentials = std::move(options.credentials)});
    case StoreUrl::Scheme::kFile:
      return FileStore::Open({.path = url.path,
                              .num_members = url.world_size.value_or(0),
                              .timeout = timeout});
    case StoreUrl::Scheme::kEtcd: {
      EtcdStoreOptions etcd;
      etcd.address = ToString(url.endpoint);
      if (!url.prefix.empty()) etcd.prefix = url.prefix;
      etcd.timeout = timeout;
      return EtcdStore::Connect(std::move(etcd));
    }
    case StoreUrl::Scheme::kRedis: {
      RedisStoreOptions redis;
      redis.host = url.endpoint.host;
      redis.port = url.endpoint.port;
      redis.username = url.username;
      redis.password = url.password;
      redis.database = url.database;
      if (!url.prefix.empty()) redis.prefix = url.prefix;
      redis.timeout = timeout;
      return RedisStore::Connect(std::move(redis));
    }
  }
  return absl::InternalError("unknown scheme of a store URL");
}

absl::StatusOr<std::unique_ptr<Store>> OpenStore(std::string_view url,
                                                 OpenStoreOptions options) {
  ASSIGN_OR_RETURN(const StoreUrl parsed, ParseStoreUrl(url));
  return OpenStore(parsed, std::move(options));
}

}  // namespace hawser::store
