#ifndef HAWSER_LAUNCH_WORKER_H_
#define HAWSER_LAUNCH_WORKER_H_

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "launch/worker_options.h"
#include "rpc/agent/agent.h"
#include "rpc/functions/function_registry.h"
#include "store/store.h"

namespace hawser::launch {

// One worker of a job: remote calls, remote references, distributed autograd
// and distributed optimizers, from one call to another:
//
//   ASSIGN_OR_RETURN(auto worker, Worker::Start({.registry = &registry}));
//   ... worker->agent() ...
//   RETURN_IF_ERROR(worker->Shutdown());
//
// Several can live in one process. Thread-safe.
class Worker {
 public:
  // Joins the job.
  //
  //   kInvalidArgument   an option, or a variable of the environment, is
  //                      missing, wrong, or without effect, naming it.
  //   kAlreadyExists     name or rank is taken; or, at rank 0, another process
  //                      listens at the master's port.
  //   kUnavailable       no store at that address.
  //   kNotFound          there is no network interface of that name, or no file
  //                      of the credentials.
  //   kFailedPrecondition  an address off loopback without TLS.
  //   kPermissionDenied  others may read the key or the token; or the
  //                      certificate is an observer's.
  //   kUnauthenticated   the store at the master's address does not accept this
  //                      worker's certificate or token, or this worker its.
  //   kDeadlineExceeded  workers are missing, naming their ranks.
  static absl::StatusOr<std::unique_ptr<Worker>> Start(WorkerOptions options);

  // Shuts down, not gracefully, unless that has been done.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // What rref::, dist_autograd:: and dist_optim:: functions take.
  rpc::Agent& agent() { return *agent_; }
  const std::string& name() const { return agent_->info().name; }
  int rank() const { return agent_->info().id.value(); }
  std::optional<int> world_size() const { return world_size_; }
  store::Store& store() { return *store_; }
  // "host:port" of the store of rank 0; empty with another store.
  std::string master() const;

  // Graceful: waits until no worker of the job has anything left to do, ends
  // all references, and stops; what is left is named in the error. Otherwise
  // stops. Idempotent. Errors as of rpc::Agent::Shutdown.
  absl::Status Shutdown(bool graceful = true);

 private:
  class StoreHost;

  Worker(std::optional<int> world_size, std::unique_ptr<StoreHost> host,
         store::Store* store);

  const std::optional<int> world_size_;
  // Unless the store is the user's.
  const std::unique_ptr<StoreHost> host_;
  std::once_flag left_;
  store::Store* const store_;
  const std::unique_ptr<rpc::FunctionRegistry> empty_registry_;
  // Null until Start succeeds.
  std::unique_ptr<rpc::Agent> agent_;
};

}  // namespace hawser::launch

#endif  // HAWSER_LAUNCH_WORKER_H_
