#ifndef HAWSER_STORE_OPEN_STORE_H_
#define HAWSER_STORE_OPEN_STORE_H_

#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "net/auth/credentials.h"
#include "store/store.h"
#include "store/store_url.h"

namespace hawser::store {

struct OpenStoreOptions {
  // Of opening, and of calls that state none.
  absl::Duration timeout = kDefaultTimeout;
  // As GrpcStoreOptions::credentials. Stores of other kinds, which have ways of
  // their own to know their clients, leave it unused.
  std::shared_ptr<const net::Credentials> credentials = nullptr;
};

// Opens the store that a URL names, as a client: somebody else serves it; with
// tcp:// and env:// that is a StoreServer, as rank 0 of a launch::Worker has
// one.
//
// With file:// and a world size, the last of so many members deletes the file.
//
//   kInvalidArgument  the URL is wrong, or, with env://, the environment lacks
//                     MASTER_ADDR or MASTER_PORT, naming it.
//   kUnavailable      nobody answers there.
//   What the backend returns.
absl::StatusOr<std::unique_ptr<Store>> OpenStore(const StoreUrl& url,
                                                 OpenStoreOptions options = {});
absl::StatusOr<std::unique_ptr<Store>> OpenStore(std::string_view url,
                                                 OpenStoreOptions options = {});

}  // namespace hawser::store

#endif  // HAWSER_STORE_OPEN_STORE_H_
