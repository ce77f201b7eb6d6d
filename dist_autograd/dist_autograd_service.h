#ifndef HAWSER_DIST_AUTOGRAD_DIST_AUTOGRAD_SERVICE_H_
#define HAWSER_DIST_AUTOGRAD_DIST_AUTOGRAD_SERVICE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/task_local.h"
#include "dist_autograd/engine.h"
#include "rpc/agent/service.h"
#include "rpc/identity/worker_info.h"
#include "rpc/wire/message_interceptor.h"

namespace hawser::dist_autograd {

// The service that adds distributed autograd to an agent. Add one to
// AgentOptions::services.
class DistAutogradService final : public rpc::Service,
                                  public rpc::MessageInterceptor {
 public:
  explicit DistAutogradService(DistAutogradOptions options = {})
      : options_(options) {}

  std::string_view name() const override { return "dist_autograd"; }
  absl::Status Start(rpc::ServiceHost& host) override;
  rpc::MessageInterceptor* message_interceptor() override { return this; }
  void OnWorkerLost(const rpc::WorkerInfo& worker,
                    const absl::Status& status) override;
  void Stop() override;
  // "contexts": number on this worker, of all creators. "backward_passes":
  // number of them in which a pass is running.
  std::map<std::string, int64_t> DebugNumbers() const override;

  absl::StatusOr<std::optional<rpc::AutogradMetadata>> OnSend(
      const rpc::WorkerInfo& peer,
      std::span<const tensor::Tensor> tensors) override;
  absl::StatusOr<async::TaskContext> OnReceiveRequest(
      const rpc::WorkerInfo& peer, const rpc::AutogradMetadata& metadata,
      std::span<tensor::Tensor> tensors) override;
  absl::Status OnReceiveReply(const rpc::WorkerInfo& peer,
                              const rpc::AutogradMetadata& metadata,
                              std::span<tensor::Tensor> tensors) override;

  // Null before Start.
  const std::shared_ptr<Engine>& engine() const { return engine_; }

 private:
  const DistAutogradOptions options_;
  std::shared_ptr<Engine> engine_;
};

// Returns the distributed autograd engine of an agent.
//
// kFailedPrecondition: a DistAutogradService is not attached to it.
absl::StatusOr<std::shared_ptr<Engine>> EngineOf(rpc::Agent& agent);
absl::StatusOr<std::shared_ptr<Engine>> EngineOf(rpc::ServiceHost& host);

}  // namespace hawser::dist_autograd

#endif  // HAWSER_DIST_AUTOGRAD_DIST_AUTOGRAD_SERVICE_H_
