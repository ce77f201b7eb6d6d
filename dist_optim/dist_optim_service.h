#ifndef HAWSER_DIST_OPTIM_DIST_OPTIM_SERVICE_H_
#define HAWSER_DIST_OPTIM_DIST_OPTIM_SERVICE_H_

#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "rpc/agent/service.h"

namespace hawser::dist_optim {

// The service for distributed optimizers over the parameters of this worker.
// Add one to AgentOptions::services, after those of references and distributed
// autograd, on which it depends.
//
// An optimizer ends when its creator destroys it or is lost.
class DistOptimService final : public rpc::Service {
 public:
  DistOptimService();
  ~DistOptimService() override;

  std::string_view name() const override { return "dist_optim"; }
  absl::Status Start(rpc::ServiceHost& host) override;
  void Stop() override;

 private:
  class Methods;

  std::shared_ptr<Methods> methods_;
};

}  // namespace hawser::dist_optim

#endif  // HAWSER_DIST_OPTIM_DIST_OPTIM_SERVICE_H_
