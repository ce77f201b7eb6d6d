#ifndef HAWSER_DIST_OPTIM_DIST_OPTIM_SERVICE_H_
#define HAWSER_DIST_OPTIM_DIST_OPTIM_SERVICE_H_

#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "rpc/agent/service.h"

namespace hawser::dist_optim {

// Serves distributed optimizers over the parameters of this worker: give one to
// AgentOptions::services, after those of references and distributed autograd,
// which it needs.
//
// An optimizer lives as long as its creator holds it and lives.
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
