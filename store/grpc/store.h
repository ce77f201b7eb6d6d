#ifndef HAWSER_STORE_GRPC_STORE_H_
#define HAWSER_STORE_GRPC_STORE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "net/auth/credentials.h"
#include "store/store.h"

namespace hawser::store {

struct GrpcStoreOptions {
  // "host:port" of a StoreServer.
  std::string address = {};
  // Of Connect, and of calls that state none.
  absl::Duration timeout = kDefaultTimeout;
  // What the client proves to the server and wants of it, which is to be some
  // worker of the job; nothing, if null.
  std::shared_ptr<const net::Credentials> credentials = nullptr;
};

// A store in the memory of a StoreServer, reached over gRPC; limits are the
// server's.
//
// A lost connection is opened again, within the time of the call: changes
// carry an id by which the server knows a repetition, so that each is applied
// once. Calls that wait are answered by the server as soon as it can, and
// forgotten there when the client goes away.
//
// Errors besides those of Store:
//   kFailedPrecondition  the server was restarted: what it held is lost.
//   kUnauthenticated     one end does not accept the other's certificate or
//                        token.
class GrpcStore final : public Store {
 public:
  // Connects and learns the server's limits.
  //
  //   kUnavailable    no server answers there in time.
  //   kUnimplemented  one does that serves no store.
  static absl::StatusOr<std::unique_ptr<GrpcStore>> Connect(
      const GrpcStoreOptions& options);
  ~GrpcStore() override;

 private:
  class Client;

  GrpcStore(const GrpcStoreOptions& options, std::unique_ptr<Client> client);

  absl::Status DoSet(const std::string& key, std::string value,
                     const CallTime& time) override;
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

  // Makes one call; `key` is named if it runs out of time.
  template <class Request, class Reply, class Method>
  absl::Status Call(Method method, const Request& request, Reply* reply,
                    const std::string& key, const CallTime& time);
  // One of `keys` that is missing now; none if all are present.
  absl::StatusOr<std::optional<std::string>> FirstMissing(
      std::span<const std::string> keys, async::MonotonicTime deadline);

  const std::unique_ptr<Client> client_;
};

}  // namespace hawser::store

#endif  // HAWSER_STORE_GRPC_STORE_H_
