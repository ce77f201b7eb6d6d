#ifndef HAWSER_LAUNCH_WORKER_H_
#define HAWSER_LAUNCH_WORKER_H_

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "dist_autograd/context_limits.h"
#include "net/auth/credentials.h"
#include "rpc/agent/agent.h"
#include "rpc/agent/agent_options.h"
#include "rpc/agent/service.h"
#include "rpc/functions/function_registry.h"
#include "rpc/grpc/transport.h"
#include "rpc/peers/call_quota.h"
#include "rpc/stream/stream_service.h"
#include "rpc/transport/transport.h"
#include "rref/reference_limits.h"
#include "store/store.h"

namespace hawser::launch {

// Options of a worker. Options that are not set are taken from the environment,
// as launchers set it, and then from the defaults.
struct WorkerOptions {
  // Unique in the job; 1 to 127 letters, digits, "-_:.", the first a letter or
  // digit. Default: "worker<rank>".
  std::string name = {};
  // This worker's number in the job. Environment: RANK. Required.
  std::optional<int> rank = {};
  // How many workers there are; all must come before Start returns.
  // Environment: WORLD_SIZE. Without it workers come and go.
  std::optional<int> world_size = {};
  // Where workers find each other, one of three:
  //
  // A URL, see store::StoreUrl: with tcp://, rank 0 keeps the store there; with
  // env://, the environment says all. May have rank and world size.
  // Environment, where none of the three is given: HAWSER_INIT.
  std::string init_url = {};
  // Where rank 0 keeps the store. Environment: MASTER_ADDR and MASTER_PORT.
  // Default: 127.0.0.1 and 29500. Port 0 lets rank 0 take any free one:
  // Worker::master().
  std::string master_address = {};
  std::optional<int> master_port = {};
  // A store of the user's. Outlives the worker.
  store::Store* store = nullptr;
  // What other workers may call here; nothing, if null. Outlives the worker.
  const rpc::FunctionRegistry* registry = nullptr;

  // What this worker is for, as others see it in WorkerInfo::roles: "trainer",
  // "ps". With TLS its certificate must have them (`hawser certs issue
  // --roles`); if empty, they are those of the certificate.
  std::vector<std::string> roles = {};

  // Jobs that share a store do not see each other.
  std::string job = "default";
  // Where this worker serves. Off loopback TLS is needed.
  std::string bind_address = "127.0.0.1:0";
  // Takes the host of bind_address from this network interface, such as
  // "eth0". Environment: HAWSER_INTERFACE.
  std::string interface = {};
  // "host:port" by which peers reach this worker, where that is not
  // bind_address: it serves on every address, or behind a translation of
  // addresses. Port 0 stands for the port it serves on.
  std::string advertise_address = {};
  // What this worker proves to others and wants of them, for its calls and the
  // store of rank 0: its certificate, which must be of this name and job, and
  // the job's token. Environment: net::WithEnvironment.
  net::CredentialsOptions credentials = {};
  // Lets this worker, and the store of rank 0, listen anywhere without TLS.
  bool allow_insecure_network = false;
  // Of calls that state none.
  absl::Duration timeout = absl::Seconds(60);
  // How long Start, and a graceful Shutdown, wait for the other workers.
  absl::Duration join_timeout = absl::Minutes(5);
  // As in rpc::AgentOptions: threads for registered functions, where blocked
  // ones are not counted, and the most of both kinds.
  int num_threads = 16;
  int max_threads = 4096;
  rpc::LivenessOptions liveness = {};
  // What peers may have this worker do at once, and keep for them after their
  // calls.
  rpc::CallLimits call_limits = {};
  rpc::StreamLimits stream_limits = {};
  rref::ReferenceLimits reference_limits = {};
  dist_autograd::ContextLimits context_limits = {};
  // What is attached besides references, distributed autograd and optimizers,
  // such as one that hears of lost workers.
  std::vector<std::unique_ptr<rpc::Service>> services = {};
  // What carries messages instead of gRPC. One of the user's has credentials
  // and limits of its own.
  std::unique_ptr<rpc::Transport> transport = {};
  // How gRPC carries messages: limits of the server, the longest message,
  // polling, memory shared on one machine. `credentials` and
  // `allow_insecure_network` are the worker's, above, and left out here.
  rpc::GrpcTransportOptions grpc = {};
};

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
