#ifndef HAWSER_STORE_OPEN_STORE_H_
#define HAWSER_STORE_OPEN_STORE_H_

#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "store/store.h"
#include "store/store_url.h"

namespace hawser::net {
class Credentials;
}  // namespace hawser::net

namespace hawser::store {

struct OpenStoreOptions {
  // Timeout of opening, and default timeout of calls.
  absl::Duration timeout = kDefaultTimeout;
  // As GrpcStoreOptions::credentials. Other kinds of stores, which authenticate
  // clients in their own way, ignore it.
  std::shared_ptr<const net::Credentials> credentials = nullptr;
};

// Opens the store at a URL as a client. The server must run elsewhere: with
// tcp:// and env:// it is a StoreServer, such as that of a launch::Worker with
// rank 0.
//
// With file:// and a world size, the last of world_size members deletes the
// file.
//
//   kInvalidArgument  the URL is malformed, or, with env://, the environment
//                     lacks MASTER_ADDR or MASTER_PORT; names it.
//   kUnavailable      no server replies.
//   other errors are those of the backend.
absl::StatusOr<std::unique_ptr<Store>> OpenStore(const StoreUrl& url,
                                                 OpenStoreOptions options = {});
absl::StatusOr<std::unique_ptr<Store>> OpenStore(std::string_view url,
                                                 OpenStoreOptions options = {});

}  // namespace hawser::store

#endif  // HAWSER_STORE_OPEN_STORE_H_
