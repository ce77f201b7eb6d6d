#ifndef HAWSER_LAUNCH_BASIC_WORKER_H_
#define HAWSER_LAUNCH_BASIC_WORKER_H_

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "launch/worker_options.h"
#include "rpc/agent/agent.h"
#include "rpc/agent/service.h"
#include "store/store.h"

namespace hawser::rpc {
class FunctionRegistry;
}  // namespace hawser::rpc

namespace hawser::launch {

class MetricsEndpoint;

// One worker of a job, with remote calls and the services of its options only.
// A Worker (launch/worker.h) also has references, distributed autograd and
// distributed optimizers, which take time to compile.
//
// Several can live in one process. Thread-safe.
class BasicWorker {
 public:
  // Joins the job.
  //
  //   kInvalidArgument   an option or an environment variable is missing,
  //                      wrong, or without effect; the error names it.
  //   kAlreadyExists     the name or rank is taken; or, at rank 0, another
  //                      process listens on the master's port.
  //   kUnavailable       the store does not reply at its address.
  //   kNotFound          the network interface or a file of the credentials
  //                      does not exist.
  //   kFailedPrecondition  an address other than loopback without TLS, or for
  //                      metrics without permission.
  //   kPermissionDenied  other users may read the key or the token; or the
  //                      certificate is an observer's.
  //   kUnauthenticated   the store at the master's address rejects this
  //                      worker's certificate or token, or this worker rejects
  //                      the store's.
  //   kDeadlineExceeded  workers have not joined; the error names their ranks.
  static absl::StatusOr<std::unique_ptr<BasicWorker>> Start(
      WorkerOptions options);

  // Calls Shutdown(/*graceful=*/false) unless the worker was shut down before.
  ~BasicWorker();
  BasicWorker(const BasicWorker&) = delete;
  BasicWorker& operator=(const BasicWorker&) = delete;

  rpc::Agent& agent() { return *agent_; }
  const std::string& name() const { return agent_->info().name; }
  int rank() const { return agent_->info().id.value(); }
  std::optional<int> world_size() const { return world_size_; }
  store::Store& store() { return *store_; }
  // "host:port" of the store that rank 0 serves; empty with another store.
  std::string master() const;

  // "host:port" of the pages for monitoring; empty without them.
  std::string metrics_address() const;

  // If `graceful`, first waits until all workers of the job are idle and their
  // services have finished (rpc::Service::Drain); the error names what remains.
  // Then stops the worker. Idempotent. Errors are those of
  // rpc::Agent::Shutdown.
  absl::Status Shutdown(bool graceful = true);

 protected:
  using Services = std::vector<std::unique_ptr<rpc::Service>>;

  BasicWorker();

  // Start, once, with the services that `own_services` returns before those of
  // the options. Its argument is the identity with what the environment and the
  // defaults add.
  absl::Status Join(
      WorkerOptions options,
      absl::FunctionRef<Services(const WorkerIdentity&)> own_services);

 private:
  class StoreHost;

  std::optional<int> world_size_;
  // Null if the user supplied the store.
  std::unique_ptr<StoreHost> host_;
  std::once_flag left_;
  store::Store* store_ = nullptr;
  const std::unique_ptr<rpc::FunctionRegistry> empty_registry_;
  // Null until Join succeeds.
  std::unique_ptr<rpc::Agent> agent_;
  // Null without pages. Destroyed first: it reads from the agent.
  std::unique_ptr<MetricsEndpoint> metrics_;
};

}  // namespace hawser::launch

#endif  // HAWSER_LAUNCH_BASIC_WORKER_H_
