#ifndef HAWSER_RREF_RREF_SERVICE_H_
#define HAWSER_RREF_RREF_SERVICE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "async/clock.h"
#include "async/future.h"
#include "rpc/agent/service.h"
#include "rpc/identity/worker_info.h"
#include "rref/protocol.h"

namespace hawser::rref {

// Attaches references to an agent: give one to AgentOptions::services.
//
// A graceful shutdown waits until every copy of a reference that this worker
// holds is settled, ends them all, and waits until no other worker holds one to
// a value here; what is left after the time given is listed in the error.
class RRefService final : public rpc::Service {
 public:
  explicit RRefService(RRefOptions options = {}) : options_(options) {}

  std::string_view name() const override { return "rref"; }
  absl::Status Start(rpc::ServiceHost& host) override;
  void OnWorkerLost(const rpc::WorkerInfo& worker,
                    const absl::Status& status) override;
  async::Future<void> Drain(async::MonotonicTime deadline) override;
  void OnLeft() override { Interrupt(); }
  void Interrupt() override;
  void Stop() override;
  // "owners": values here that references are to, of which "awaited" were not
  // created yet; "forks": the copies of these references, of which
  // "remote_forks" are at other workers; "users": copies here of references to
  // values of others, of which "unconfirmed_users" may not be used yet;
  // "control_senders" and "control_receivers": workers of which it is kept
  // which control message was the last.
  std::map<std::string, int64_t> DebugNumbers() const override;

  // Null before Start.
  const std::shared_ptr<Protocol>& protocol() const { return protocol_; }

 private:
  const RRefOptions options_;
  std::shared_ptr<Protocol> protocol_;
};

// The reference protocol of an agent.
//
// kFailedPrecondition: no RRefService is attached to it.
absl::StatusOr<std::shared_ptr<Protocol>> ProtocolOf(rpc::Agent& agent);
absl::StatusOr<std::shared_ptr<Protocol>> ProtocolOf(rpc::ServiceHost& host);

}  // namespace hawser::rref

#endif  // HAWSER_RREF_RREF_SERVICE_H_
