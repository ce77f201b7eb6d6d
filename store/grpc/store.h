#ifndef HAWSER_STORE_GRPC_STORE_H_
#define HAWSER_STORE_GRPC_STORE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/future.h"
#include "store/store.h"

namespace hawser::net {
class Credentials;
}  // namespace hawser::net

namespace hawser::store {

struct GrpcStoreOptions {
  // "host:port" of a StoreServer.
  std::string address = {};
  // Timeout of Connect, and default timeout of calls.
  absl::Duration timeout = kDefaultTimeout;
  // Credentials of the client. With TLS, the server must be a worker of the
  // same job. Null for none.
  std::shared_ptr<const net::Credentials> credentials = nullptr;
};

// A store in the memory of a StoreServer, accessed over gRPC. The server sets
// the limits.
//
// A lost connection is reopened within the timeout of the call. Changes carry
// an id by which the server recognises retries, so that each is applied once.
// The server completes waiting calls as soon as their keys are present, and
// drops them when the client disconnects.
//
// Errors besides those of Store:
//   kFailedPrecondition  the server was restarted and its data is lost.
//   kUnauthenticated     one end rejects the other's certificate or token.
class GrpcStore final : public Store {
 public:
  // Connects and learns the server's limits. Waits for a server that has not
  // started; says so in the log after 2 s.
  //
  //   kUnavailable         no server replies in time.
  //   kUnimplemented       the server does not serve a store.
  //   kUnauthenticated     as above; or one end uses TLS, the other does not.
  //   kFailedPrecondition  something other than gRPC replies, or there is no
  //                        route to the address.
  //   kResourceExhausted   this process has no free descriptor.
  static absl::StatusOr<std::unique_ptr<GrpcStore>> Connect(
      const GrpcStoreOptions& options);
  ~GrpcStore() override;

 private:
  class Client;

  GrpcStore(const GrpcStoreOptions& options, std::unique_ptr<Client> client);

  absl::Status DoSet(const std::string& key, std::string value,
                     const CallTime& time) override;
  absl::Status DoSetLease(const std::string& key, std::string value,
                          absl::Duration lifetime,
                          const CallTime& time) override;
  async::Future<std::vector<std::string>> DoWhenChanged(
      std::vector<WatchedKey> keys) override;
  absl::StatusOr<std::string> DoGet(const std::string& key,
                                    const CallTime& time) override;
  absl::StatusOr<int64_t> DoAdd(const std::string& key, int64_t delta,
                                const CallTime& time) override;
  absl::StatusOr<int64_t> DoAppend(const std::string& key, std::string suffix,
                                   const CallTime& time) override;
  absl::StatusOr<CompareAndSetResult> DoCompareAndSet(
      const std::string& key, std::string expected, std::string desired,
      const CallTime& time) override;
  absl::Status DoWait(std::span<const std::string> keys,
                      const CallTime& time) override;
  absl::StatusOr<bool> DoCheck(std::span<const std::string> keys,
                               const CallTime& time) override;
  absl::StatusOr<bool> DoDelete(const std::string& key,
                                const CallTime& time) override;
  absl::StatusOr<int64_t> DoNumKeys(const CallTime& time) override;

  // Makes one call; the timeout error names `key`.
  template <class Request, class Reply, class StubMethod>
  absl::Status Call(StubMethod method, const Request& request, Reply* reply,
                    const std::string& key, const CallTime& time);
  // Returns one of `keys` that is missing now, or nullopt if all are present.
  absl::StatusOr<std::optional<std::string>> FirstMissing(
      std::span<const std::string> keys, async::MonotonicTime deadline);

  const std::unique_ptr<Client> client_;
};

}  // namespace hawser::store

#endif  // HAWSER_STORE_GRPC_STORE_H_
