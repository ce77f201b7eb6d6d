#ifndef HAWSER_STORE_STORE_URL_H_
#define HAWSER_STORE_STORE_URL_H_

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "store/endpoint.h"

namespace hawser::store {

// URL of the store that the workers of a job share:
//
//   env://                                   MASTER_ADDR, MASTER_PORT
//   tcp://HOST[:PORT]                        a store server; port 29500
//   file:///PATH                             a file that all share
//   etcd://HOST[:PORT][/PREFIX]              port 2379
//   redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE[/PREFIX]]    port 6379
//
// each optionally followed by "?rank=N&world_size=N" or one of the two
// parameters. "%41" encodes a byte, except in HOST. An IPv6 address has
// brackets.
struct StoreUrl {
  enum class Scheme { kEnv, kTcp, kFile, kEtcd, kRedis };

  Scheme scheme = Scheme::kEnv;
  // For tcp, etcd and redis.
  Endpoint endpoint = {};
  // For file; absolute.
  std::string path = {};
  // For etcd and redis; empty for the backend's default.
  std::string prefix = {};
  // For redis.
  int database = 0;
  std::string username = {};
  std::string password = {};
  // At least 0.
  std::optional<int> rank = {};
  // At least 1.
  std::optional<int> world_size = {};
};

// Parses `url`. kInvalidArgument names the missing or malformed part and never
// contains a password.
absl::StatusOr<StoreUrl> ParseStoreUrl(std::string_view url);

}  // namespace hawser::store

#endif  // HAWSER_STORE_STORE_URL_H_
