#include "launch/worker.h"

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "async/status_macros.h"
#include "dist_autograd/dist_autograd_service.h"
#include "dist_optim/dist_optim_service.h"
#include "launch/basic_worker.h"
#include "launch/worker_options.h"
#include "rpc/stream/stream_service.h"
#include "rref/rref_service.h"

namespace hawser::launch {

absl::StatusOr<std::unique_ptr<Worker>> Worker::Start(
    WorkerOptions options, const ServiceLimits& limits) {
  std::unique_ptr<Worker> worker(new Worker());
  const auto services = [&limits](const WorkerIdentity& identity) {
    rref::RRefOptions references;
    references.limits = limits.references;
    references.wait_for_users = identity.world_size.has_value();
    Services list;
    list.push_back(std::make_unique<rpc::StreamService>(limits.streams));
    list.push_back(std::make_unique<rref::RRefService>(references));
    list.push_back(std::make_unique<dist_autograd::DistAutogradService>(
        dist_autograd::DistAutogradOptions{.limits = limits.contexts}));
    list.push_back(std::make_unique<dist_optim::DistOptimService>());
    return list;
  };
  RETURN_IF_ERROR(worker->Join(std::move(options), services));
  return worker;
}

}  // namespace hawser::launch
