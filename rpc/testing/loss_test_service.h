// A service that is notified of lost workers after the services attached before
// it.

#ifndef HAWSER_RPC_TESTING_LOSS_TEST_SERVICE_H_
#define HAWSER_RPC_TESTING_LOSS_TEST_SERVICE_H_

#include <string_view>

#include "absl/status/status.h"
#include "absl/synchronization/notification.h"
#include "rpc/agent/service.h"
#include "rpc/identity/worker_info.h"

namespace hawser::rpc {

class LossService final : public Service {
 public:
  // `lost` is notified of the loss; at most one loss may occur.
  explicit LossService(absl::Notification* lost) : lost_(*lost) {}

  std::string_view name() const override { return "loss"; }
  absl::Status Start(ServiceHost&) override { return absl::OkStatus(); }
  void OnWorkerLost(const WorkerInfo&, const absl::Status&) override {
    lost_.Notify();
  }

 private:
  absl::Notification& lost_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_TESTING_LOSS_TEST_SERVICE_H_
