// A store server and its clients, for tests.

#ifndef HAWSER_STORE_TESTING_TEST_SERVER_H_
#define HAWSER_STORE_TESTING_TEST_SERVER_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "async/testing/status_matchers.h"
#include "gtest/gtest.h"
#include "store/grpc/server.h"
#include "store/grpc/store.h"

namespace hawser::store {

// Starts a server; on failure returns null and fails the test.
inline std::unique_ptr<StoreServer> MustStart(StoreServerOptions options = {}) {
  absl::StatusOr<std::unique_ptr<StoreServer>> server =
      StoreServer::Start(std::move(options));
  EXPECT_THAT(server, async::IsOk());
  return server.ok() ? *std::move(server) : nullptr;
}

inline std::unique_ptr<GrpcStore> MustConnect(const std::string& address) {
  absl::StatusOr<std::unique_ptr<GrpcStore>> store =
      GrpcStore::Connect({.address = address});
  EXPECT_THAT(store, async::IsOk());
  return store.ok() ? *std::move(store) : nullptr;
}

}  // namespace hawser::store

#endif  // HAWSER_STORE_TESTING_TEST_SERVER_H_
