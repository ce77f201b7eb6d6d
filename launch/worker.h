#ifndef HAWSER_LAUNCH_WORKER_H_
#define HAWSER_LAUNCH_WORKER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "dist_autograd/context_limits.h"
#include "launch/basic_worker.h"
#include "launch/worker_options.h"
#include "rpc/stream/stream_limits.h"
#include "rref/reference_limits.h"

namespace hawser::launch {

// Limits of the services that every Worker has.
struct ServiceLimits {
  rpc::StreamLimits streams = {};
  rref::ReferenceLimits references = {};
  dist_autograd::ContextLimits contexts = {};
};

// One worker of a job, with remote calls, streams, remote references,
// distributed autograd and distributed optimizers:
//
//   ASSIGN_OR_RETURN(auto worker, Worker::Start({.registry = &registry}));
//   ... worker->agent() ...
//   RETURN_IF_ERROR(worker->Shutdown());
//
// agent() is what functions of rref::, dist_autograd:: and dist_optim:: take. A
// graceful Shutdown also ends all references, and its error names those that
// remain.
class Worker : public BasicWorker {
 public:
  // Joins the job. Errors are those of BasicWorker::Start.
  static absl::StatusOr<std::unique_ptr<Worker>> Start(
      WorkerOptions options, const ServiceLimits& limits = {});

 private:
  Worker() = default;
};

}  // namespace hawser::launch

#endif  // HAWSER_LAUNCH_WORKER_H_
