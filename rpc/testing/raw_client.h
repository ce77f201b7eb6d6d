// Test client that calls workers without being one.

#ifndef HAWSER_RPC_TESTING_RAW_CLIENT_H_
#define HAWSER_RPC_TESTING_RAW_CLIENT_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/clock.h"
#include "async/future.h"
#include "rpc/agent/agent_options.h"
#include "rpc/identity/worker_info.h"
#include "rpc/transport/payload.h"
#include "rpc/transport/transfer_counters.h"
#include "rpc/transport/transport.h"
#include "rpc/wire/message_codec.h"

namespace hawser::rpc {

// Sends requests with arbitrary headers. Thread-safe.
class RawClient {
 public:
  explicit RawClient(std::unique_ptr<Transport> transport)
      : transport_(std::move(transport)) {}
  ~RawClient() { transport_->Shutdown(); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  // Sends `body`, a serialised message without header, to the method at `path`
  // of `to`, as if from `source`, and waits for the reply.
  absl::Status Call(const WorkerInfo& source, const WorkerInfo& to,
                    std::string_view path, std::string body) {
    const std::string job = AgentOptions().job;
    absl::StatusOr<Payload> request = EncodeMessage(
        {.body = std::move(body),
         .header =
             EncodeRequestHeader({.job = job,
                                  .source = source.name,
                                  .source_rank = source.id,
                                  .source_incarnation = source.incarnation,
                                  .destination = to.name,
                                  .destination_incarnation = to.incarnation,
                                  .call_id = ++last_call_,
                                  .autograd = std::nullopt})},
        counters_);
    if (!request.ok()) return request.status();
    return Send(to, path, *std::move(request));
  }

  // Same, with arbitrary bytes.
  absl::Status Send(const WorkerInfo& to, std::string_view path,
                    Payload request) {
    absl::StatusOr<std::shared_ptr<Connection>> connection =
        transport_->Connect({.address = to.address});
    if (!connection.ok()) return connection.status();
    async::Promise<void> answered;
    async::Future<void> answer = answered.future();
    (*connection)
        ->Call(path, std::move(request), async::kNever,
               [answered = std::move(answered)](
                   absl::StatusOr<Payload> reply) mutable {
                 answered.Set(reply.status());
               });
    return answer.Wait();
  }

 private:
  const std::unique_ptr<Transport> transport_;
  TransferCounters counters_;
  std::atomic<uint64_t> last_call_{0};
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_TESTING_RAW_CLIENT_H_
