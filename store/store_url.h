#ifndef HAWSER_STORE_STORE_URL_H_
#define HAWSER_STORE_STORE_URL_H_

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "store/endpoint.h"

namespace hawser::store {

// URL of the store at which the workers of a job meet:
//
//   env://                                   MASTER_ADDR, MASTER_PORT
//   tcp://HOST[:PORT]                        a store server; port 29500
//   file:///PATH                             a file that all share
//   etcd://HOST[:PORT][/PREFIX]              port 2379
//   redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE[/PREFIX]]    port 6379
//
// each with "?rank=N&world_size=N" behind it, or one of the two. "%41" stands
// for a byte, except in HOST. An IPv6 address has brackets.
struct StoreUrl {
  enum class Scheme { kEnv, kTcp, kFile, kEtcd, kRedis };

  Scheme scheme = Scheme::kEnv;
  // Of tcp, etcd and redis.
  Endpoint endpoint = {};
  // Of file: absolute.
  std::string path = {};
  // Of etcd and redis; empty: the backend's default.
  std::string prefix = {};
  // Of redis.
  int database = 0;
  std::string username = {};
  std::string password = {};
  // 0 or more.
  std::optional<int> rank = {};
  // 1 or more.
  std::optional<int> world_size = {};
};

// kInvalidArgument names the part that is missing or wrong, and repeats no
// password.
absl::StatusOr<StoreUrl> ParseStoreUrl(std::string_view url);

}  // namespace hawser::store

#endif  // HAWSER_STORE_STORE_URL_H_
