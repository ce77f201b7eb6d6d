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

// The service that adds references to an agent. Add one to
// AgentOptions::services.
//
// A graceful shutdown waits until all copies of references that this worker
// holds are settled, ends them, and waits until other workers do not hold
// references to values here. The error lists the references that remain at its
// timeout.
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
  // "owners": values here with references, of which "awaited" have not been
  // created yet. "forks": the copies of these references, of which
  // "remote_forks" are on other workers. "users": copies here of references to
  // values of other workers, of which "unconfirmed_users" must not be used yet.
  // "control_senders" and "control_receivers": peers with state in the control
  // channel.
  std::map<std::string, int64_t> DebugNumbers() const override;

  // Null before Start.
  const std::shared_ptr<Protocol>& protocol() const { return protocol_; }

 private:
  const RRefOptions options_;
  std::shared_ptr<Protocol> protocol_;
};

// Returns the reference protocol of an agent.
//
// kFailedPrecondition: an RRefService is not attached to it.
absl::StatusOr<std::shared_ptr<Protocol>> ProtocolOf(rpc::Agent& agent);
absl::StatusOr<std::shared_ptr<Protocol>> ProtocolOf(rpc::ServiceHost& host);

}  // namespace hawser::rref

#endif  // HAWSER_RREF_RREF_SERVICE_H_
